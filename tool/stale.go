package tool

// Seen is what the model last saw or made of a file.
type Seen struct {
	Hash string // SHA-256 of the content, hex; "" when it knows that there is no file
	Data []byte // the content, nil when it is not at hand
}

// StaleError: a call would overwrite a file that the user or another program changed after
// the model saw it. It is not the model's mistake; Reason describes what changed.
type StaleError struct {
	Now    FileTouch // the file as it is; its Source is not set
	Reason string    // in words the model can act on, with the difference where it is small
	Shown  bool      // Reason holds all that changed: the model knows the content now
}

func (e *StaleError) Error() string { return e.Reason }
