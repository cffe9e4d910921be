package client

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is a refusal: the RFC 9457 problem object that the server sent.
type Problem struct {
	Status      int      `json:"status"`
	Code        string   `json:"code"`
	Title       string   `json:"title"`
	Detail      string   `json:"detail"`
	Request     string   `json:"request_id"`
	Task        string   `json:"task_id"`
	Suggestions []string `json:"suggestions"`
	Retryable   bool     `json:"retryable"`
	Errors      []Wrong  `json:"errors"`

	Raw   json.RawMessage `json:"-"` // the object's own bytes
	after time.Duration   // Retry-After
}

// Wrong is one thing that is wrong with a request.
type Wrong struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// Unreachable is an error on the way to a server: nothing listens there, the connection broke too often, or
// something else than a server of Roost answers.
type Unreachable struct {
	Base string // the server's address
	Err  error
}

func (e *Unreachable) Error() string { return "reach the server " + e.Base + ": " + e.Err.Error() }

func (e *Unreachable) Unwrap() error { return e.Err }

// problemBytes bounds how much of a refusal the client reads.
const problemBytes = 4 << 20

// refusal reads an answer with a status other than 2xx, and closes it.
func (c *Client) refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, problemBytes))
	resp.Body.Close()
	if err != nil {
		return err
	}
	p := &Problem{}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, p) != nil || p.Code == "" {
		return &Unreachable{c.base, fmt.Errorf("this is not a server of roost: it answers %s", resp.Status)}
	}
	p.Status = resp.StatusCode
	p.Raw = body
	if n, err := strconv.Atoi(strings.TrimSpace(resp.Header.Get("Retry-After"))); err == nil && n >= 0 && n < 3600 {
		p.after = time.Duration(n) * time.Second
	}
	return p
}
