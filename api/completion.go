package api

// Completion is a word that may complete what a user typed.
type Completion struct {
	Text  string `json:"text"` // as it is inserted
	About string `json:"about"`
	// From is who defined it: builtin, global (the user), project (the workspace: its author is not trusted), or the
	// provider of a model; "" for a word that nobody defines.
	From string `json:"from,omitempty"`
}
