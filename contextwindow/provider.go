package contextwindow

import "cmp"

// For are the options of a provider's own models, as far as its documentation sets limits. An unknown provider gets
// nothing of the model's thinking.
//
// Limits on all images together leave room for the rest of the request: 32 MB with Anthropic, 50 MB with OpenAI, 20 MB
// with Google.
func For(provider string) Options {
	switch provider {
	case "anthropic":
		return Options{Images: ImageLimits{Count: 100, Bytes: 5 << 20, Total: 20 << 20, Side: 8000, Many: 20, ManySide: 2000}}
	case "openai":
		return Options{
			DropThinking:  true,
			KeepReasoning: true,
			NameLength:    64,
			IDLength:      64,
			Images:        ImageLimits{Count: 500, Bytes: 20 << 20, Total: 40 << 20},
		}
	case "openai-compatible":
		// Chat completions of OpenAI itself accepted ids of 40 bytes for years.
		return Options{
			DropThinking: true,
			KeepDetails:  true,
			NameLength:   64,
			IDLength:     40,
			Images:       ImageLimits{Count: 100, Bytes: 20 << 20, Total: 40 << 20},
		}
	case "google":
		return Options{
			DropThinking:   true,
			KeepSignatures: true,
			NameLength:     64,
			NameLetter:     true,
			Images:         ImageLimits{Count: 900, Bytes: 7 << 20, Total: 14 << 20, NoGIF: true},
		}
	}
	return Options{DropThinking: true}
}

// Options describe what the model accepts.
type Options struct {
	DropThinking  bool // leave signed thinking out: the model changed, or is not Anthropic's
	KeepReasoning bool // send encrypted reasoning back: OpenAI's models require their own
	// KeepSignatures sends the signatures of thoughts back: Google's models refuse their own calls without them.
	KeepSignatures bool
	// KeepDetails sends a message's reasoning_details back: servers of chat completions that send them require them.
	KeepDetails bool
	// KeepReasoningContent sends plain reasoning back with each of the assistant's
	// messages, an empty string where none is stored: servers of chat completions that
	// send reasoning_content refuse calls without it.
	KeepReasoningContent bool
	NoImages             bool // the model accepts no images; a text replaces each

	Images     ImageLimits
	NameLength int  // of a tool's name, in bytes; 0 = 128
	NameLetter bool // a tool's name begins with a letter or an underscore
	IDLength   int  // of a tool call's id, in bytes; 0 = 1024

	left *load // the images of the message being checked
}

// name turns a tool's name into one that can be sent.
func (o Options) name(s string) string {
	limit := cmp.Or(o.NameLength, 128)
	s = safeName(s, "unknown_tool", limit)
	if o.NameLetter && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') {
		s = cut("_"+s, limit)
	}
	return s
}

func (o Options) idLength() int { return cmp.Or(o.IDLength, 1<<10) }
