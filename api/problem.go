package api

import "net/http"

// Problem is an error for a client: an RFC 9457 object with suggestions.
type Problem struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Status      int      `json:"status"`
	Code        string   `json:"code"` // for programs
	Detail      string   `json:"detail"`
	Instance    string   `json:"instance,omitempty"` // the path of the request
	Request     string   `json:"request_id,omitempty"`
	Task        string   `json:"task_id,omitempty"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
	Errors      []Wrong  `json:"errors,omitempty"`

	Answer *Answered `json:"answer,omitempty"` // the first answer to a question

	Cause error  `json:"-"` // for the log, never for the client
	Allow string `json:"-"` // of a 405
	After string `json:"-"` // Retry-After, in seconds
}

// Wrong is one fault of a request.
type Wrong struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

func (p *Problem) Unwrap() error { return p.Cause }

// NewProblem makes a problem.
func NewProblem(status int, code, title, detail string, suggestions ...string) *Problem {
	return &Problem{Status: status, Code: code, Title: title, Detail: detail, Suggestions: suggestions}
}

// Because sets the cause.
func (p *Problem) Because(err error) *Problem {
	p.Cause = err
	return p
}

// Invalid is the problem of a document, with everything that is wrong with it.
func Invalid(wrong ...Wrong) *Problem {
	at := wrong[0].Parameter
	if at == "" {
		at = "the body"
	}
	p := NewProblem(http.StatusUnprocessableEntity, "validation_failed", "Something in the body is wrong", at+": "+wrong[0].Detail)
	p.Errors = wrong
	return p
}
