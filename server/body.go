package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/schema"
)

const patchMedia = "application/merge-patch+json"

// smallBody is the size, in bytes, up to which a body does not count as large.
const smallBody = 64 << 10

// maxBodies bounds how many large bodies the server reads at a time.
const maxBodies = 8

// take reads the whole body of a request that changes something, within bounds of bytes and time. Nothing changes before
// all of it has arrived.
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
