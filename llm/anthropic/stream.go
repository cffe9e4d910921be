package anthropic

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// drainLimit bounds the wait for the end of the response after its last event.
// Reading it to the end keeps the connection for the next turn; a new one costs a
// TLS handshake.
const drainLimit = 100 * time.Millisecond

// Stream asks and yields what comes. See llm.Provider. Errors are *llm.Error, or
// the context's cause when the caller ended it.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	body, err := p.body(req)
	return func(yield func(llm.Chunk, error) bool) {
		if p.opts.APIKey == "" && p.opts.BaseURL == DefaultBaseURL {
			yield(nil, p.fail(llm.Auth, 0, "no API key; try: roost auth set anthropic, or set ANTHROPIC_API_KEY"))
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		wire.Attempts(ctx, p.opts.Backoff, yield, func() (bool, error) { return p.attempt(ctx, body, yield) })
	}
}

// attempt sends the body once. started says whether a chunk was yielded.
func (p *Provider) attempt(ctx context.Context, body *wire.Body, yield func(llm.Chunk, error) bool) (started bool, err error) {
	ctx, idle, stop := wire.WithIdle(ctx, p.opts.IdleTimeout)
	defer stop()
	var res *http.Response
	// Post, not Messages.NewStreaming: that one parses and copies the whole body to
	// set "stream", and hides how the stream ended.
	if err := p.client.Post(ctx, "v1/messages", nil, &res, send(body)); err != nil {
		return false, p.requestError(ctx, err)
	}
	defer res.Body.Close()
	idle.Pause()

	var acc accumulator
	events := wire.NewEvents(idle.Reader(res.Body))
	defer events.Free()
	for {
		ev, err := events.Next()
		if err != nil {
			return started, p.clean(wire.TransportError(ctx, Name, err, true))
		}
		chunk, done, err := acc.add(ev.Data)
		if err != nil {
			var failed *llm.Error
			if errors.As(err, &failed) {
				failed.RetryAfterMS = wire.RetryAfter(res.Header, p.opts.Now()).Milliseconds()
			}
			return started, p.clean(err)
		}
		if chunk != nil {
			if !started {
				// Usage is held back until there is something to show, so that an
				// attempt that dies before that can still be repeated.
				started = true
				if !yield(llm.UsageReport{Usage: acc.usage}, nil) {
					return started, wire.ErrStop
				}
			}
			if !yield(chunk, nil) {
				return started, wire.ErrStop
			}
		}
		if done {
			more := yield(acc.done(), nil)
			drain(res.Body, stop)
			if !more {
				return true, wire.ErrStop
			}
			return true, nil
		}
	}
}

// drain reads what is left, for a moment.
func drain(body io.Reader, cancel func()) {
	t := time.AfterFunc(drainLimit, cancel)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, 64<<10)
}

// requestError turns what the SDK returned into an *llm.Error. The SDK's own
// error is not wrapped: it holds the request with its headers.
func (p *Provider) requestError(ctx context.Context, err error) error {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return p.clean(wire.TransportError(ctx, Name, err, false))
	}
	typ, message := errorParts([]byte(api.RawJSON()))
	if message == "" {
		message = wire.Shorten(api.RawJSON(), 500)
	}
	if message == "" {
		message = http.StatusText(api.StatusCode)
	}
	out := p.fail(kindOf(api.StatusCode, typ, message), api.StatusCode, message)
	if api.Response != nil {
		out.RetryAfterMS = wire.RetryAfter(api.Response.Header, p.opts.Now()).Milliseconds()
	}
	return out
}

// clean takes keys out of an error's text.
func (p *Provider) clean(err error) error {
	var e *llm.Error
	if errors.As(err, &e) {
		return wire.RedactError(e, p.opts.APIKey)
	}
	return err
}

// kindOf classifies by the API's own error type, and by status where the type
// says nothing. An error event in a stream has a type and no status.
func kindOf(status int, typ, message string) llm.Kind {
	switch typ {
	case "overloaded_error":
		return llm.Overloaded
	case "rate_limit_error":
		return llm.RateLimited
	case "authentication_error", "permission_error":
		return llm.Auth
	case "request_too_large":
		return llm.ContextOverflow
	case "timeout_error":
		return llm.Server
	case "api_error":
		if status < 400 {
			return llm.Server
		}
	case "invalid_request_error":
		if status < 400 {
			status = http.StatusBadRequest
		}
	case "not_found_error", "billing_error":
		if status < 400 {
			return llm.Invalid
		}
	}
	if status < 400 {
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}
