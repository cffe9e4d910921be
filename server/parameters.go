package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/schema"
)

// param is a query parameter of a route. The reader of queries and the OpenAPI document use the same table.
type param struct {
	name  string
	kind  string // text, number, flag, time, dollars, word, words
	words []string
	doc   string
	least int // of a number
	most  int
	deflt int
}

func newParam(name, kind, doc string) param {
	p := param{name: name, kind: kind, doc: doc}
	switch {
	case strings.Contains(kind, ".."):
		p.kind = "number"
		_, _ = fmt.Sscanf(kind, "%d..%d=%d", &p.least, &p.most, &p.deflt) // a test reads all
	case strings.Contains(kind, "|"):
		p.kind, p.words = "word", strings.Split(kind, "|")
	case strings.Contains(kind, ","):
		p.kind, p.words = "words", strings.Split(kind, ",")
	}
	return p
}

// values are the given parameters of one request.
type values struct {
	text   map[string]string
	number map[string]int
	flag   map[string]bool
	time   map[string]int64 // Unix milliseconds
	usd    map[string]*money.USD
}

// longest bounds a parameter, in bytes.
const longest = 4096

// decode reads the query of a request strictly: one problem lists all unknown, repeated and malformed parameters.
func decode(raw string, params []param, now time.Time) (values, error) {
	v := values{map[string]string{}, map[string]int{}, map[string]bool{}, map[string]int64{}, map[string]*money.USD{}}
	for _, p := range params {
		if p.kind == "number" {
			v.number[p.name] = p.deflt
		}
	}
	given, err := url.ParseQuery(raw)
	if err != nil {
		return v, problem(http.StatusBadRequest, "bad_query", "The query cannot be read",
			"it is not of the form name=value&name=value, percent-encoded")
	}
	var wrong []api.Wrong
	for name, texts := range given {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			wrong = append(wrong, api.Wrong{Parameter: report.Clip(name), Detail: "there is no such parameter" + known(params)})
		case len(texts) > 1:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "it is given twice"})
		case len(texts[0]) > longest:
			wrong = append(wrong, api.Wrong{Parameter: name, Detail: "it is too long"})
		default:
			if why := v.read(params[i], texts[0], now); why != "" {
				wrong = append(wrong, api.Wrong{Parameter: name, Detail: why})
			}
		}
	}
	if len(wrong) == 0 {
		return v, nil
	}
	slices.SortFunc(wrong, func(a, b api.Wrong) int { return strings.Compare(a.Parameter, b.Parameter) })
	return v, wrongParameters(wrong...)
}

func wrongParameters(wrong ...api.Wrong) *api.Problem {
	p := api.Invalid(wrong...)
	p.Title = "A parameter is wrong"
	return p
}

// read reads one parameter; why is "" when it is well-formed.
func (v *values) read(p param, text string, now time.Time) (why string) {
	switch p.kind {
	case "number":
		n, err := strconv.Atoi(text)
		switch {
		case p.most > 0 && (err != nil || n < p.least || n > p.most):
			return "want a whole number from " + strconv.Itoa(p.least) + " to " + strconv.Itoa(p.most)
		case err != nil || n < p.least:
			return "want a whole number from " + strconv.Itoa(p.least) + " on"
		}
		v.number[p.name] = n
	case "flag":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "want true or false"
		}
		v.flag[p.name] = b
	case "time":
		at, ok := api.Moment(text, now)
		if !ok {
			return "want a time such as 2026-01-31 or RFC 3339, or an age such as 7d"
		}
		v.time[p.name] = at
	case "dollars":
		usd, err := money.Parse(text)
		if err != nil || usd < 0 {
			return "want an amount of US dollars such as 0.50"
		}
		v.usd[p.name] = &usd
	case "word":
		if !slices.Contains(p.words, text) {
			return "want one of " + strings.Join(p.words, ", ")
		}
		v.text[p.name] = text
	case "words":
		for _, word := range strings.Split(text, ",") {
			if !slices.Contains(p.words, word) {
				return "want some of " + strings.Join(p.words, ", ") + ", joined by commas"
			}
		}
		v.text[p.name] = text
	default:
		v.text[p.name] = text
	}
	return ""
}

func known(params []param) string {
	if len(params) == 0 {
		return "; this route takes none"
	}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return "; there are: " + strings.Join(names, ", ")
}

const patchMedia = "application/merge-patch+json"

// smallBody is the size, in bytes, up to which a body does not count as large.
const smallBody = 64 << 10

// maxBodies bounds how many large bodies the server reads at a time.
const maxBodies = 8

// take reads the whole body of a request that changes something, within bounds of bytes and time. Nothing changes
// before all of it has arrived.
func (s *Server) take(w http.ResponseWriter, a *asked) error {
	if a.ContentLength == 0 {
		return nil
	}
	if a.ContentLength < 0 || a.ContentLength > smallBody {
		select { // each large one costs memory, so their number is bounded
		case s.bodies <- struct{}{}:
			defer func() { <-s.bodies }()
		case <-a.Context().Done():
			return a.Context().Err()
		}
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
	var buf bytes.Buffer
	n, err := buf.ReadFrom(http.MaxBytesReader(w, a.Body, s.opt.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(s.opt.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return problem(http.StatusRequestTimeout, "body_incomplete", "The body did not come",
			"it ended, or stopped coming, before its end").Because(err)
	case err != nil:
		return errors.Join(err, context.Canceled) // the client went away
	}
	// The whole body was read: the connection can be used again, and the server notices without a deadline that the
	// client has gone.
	_ = ctl.SetReadDeadline(time.Time{})
	w.Header().Del("Connection")
	if n == 0 {
		return nil
	}
	if err := rightMedia(a); err != nil {
		return err
	}
	a.body = buf.Bytes()
	if a.route.body == nil { // some clients send an empty object for no body
		return a.read(&struct{}{})
	}
	return nil
}

func tooLarge(most int64) *api.Problem {
	return problem(http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large",
		"a body may have up to "+strconv.FormatInt(most>>20, 10)+" MiB")
}

// rightMedia refuses bodies with another media type than JSON: a page of another site can send those without a
// preflight request.
func rightMedia(a *asked) error {
	given := a.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	isJSON := media == jsonMedia || media == patchMedia && a.Method == http.MethodPatch
	if err != nil || !isJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The body is of no kind that can be read",
			"its Content-Type is "+report.Clip(strconv.Quote(given)), "Content-Type: "+jsonMedia)
	}
	if enc := a.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The body is of no kind that can be read",
			"it is packed: "+report.Clip(strconv.Quote(enc)), "leave Content-Encoding out")
	}
	return nil
}

// read decodes the body strictly into the target of a pointer.
func (a *asked) read(into any) error { return schema.Read(a.body, into) }
