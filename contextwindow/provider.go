package contextwindow

// For are the options of a provider's own models, as far as its documentation sets
// limits. A provider that is not known is sent nothing of the model's thinking.
//
// Limits on all images together leave room for the rest of the request: 32 MB with
// Anthropic, 50 MB with OpenAI, 20 MB with Google.
func For(provider string) Options {
	switch provider {
	case "anthropic":
		return Options{Images: ImageLimits{Count: 100, Bytes: 5 << 20, Total: 20 << 20, Side: 8000, Many: 20, ManySide: 2000}}
	case "openai":
		return Options{
			DropThinking: true, KeepReasoning: true, NameLength: 64, IDLength: 64,
			Images: ImageLimits{Count: 500, Bytes: 20 << 20, Total: 40 << 20},
		}
	case "openai-compatible":
		// Chat completions of OpenAI itself took ids of 40 bytes for years.
		return Options{
			DropThinking: true, KeepDetails: true, NameLength: 64, IDLength: 40,
			Images: ImageLimits{Count: 100, Bytes: 20 << 20, Total: 40 << 20},
		}
	case "google":
		return Options{
			DropThinking: true, KeepSignatures: true, NameLength: 64, NameLetter: true,
			Images: ImageLimits{Count: 900, Bytes: 7 << 20, Total: 14 << 20, NoGIF: true},
		}
	}
	return Options{DropThinking: true}
}
