package wire_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// A reply is yielded once and last, however its stream ends; a new attempt keeps nothing
// of the one before; and after the first chunk there is none.
func TestAsk(t *testing.T) {
	cut := errors.New("") // any *llm.Error of a stream that was cut
	for name, c := range map[string]struct {
		streams []string // one an attempt; "!" ends an answer of status 529
		ends    bool     // a stream that simply ends is complete
		stop    string   // the consumer wants no more after this chunk
		want    []string
		err     error
	}{
		"an end of its own":           {streams: []string{"a b done"}, want: []string{"a", "b", "=ab"}},
		"behind it nothing counts":    {streams: []string{"a done b bad"}, want: []string{"a", "=a"}},
		"simply ended":                {streams: []string{"a b"}, ends: true, want: []string{"a", "b", "=ab"}},
		"an end although it need not": {streams: []string{"a done"}, ends: true, want: []string{"a", "=a"}},
		"cut":                         {streams: []string{"a b"}, want: []string{"a", "b"}, err: cut},
		"nothing but an end":          {streams: []string{"done"}, want: []string{"="}},
		"the second time":             {streams: []string{"!", "a done"}, want: []string{"wait", "a", "=a"}},
		"bad before it began":         {streams: []string{"bad", "a done"}, want: []string{"wait", "a", "=a"}},
		"bad after it began":          {streams: []string{"a bad"}, want: []string{"a"}, err: cut},
		"nobody wants more":           {streams: []string{"a b done"}, stop: "a", want: []string{"a"}},
		"nor its end":                 {streams: []string{"a"}, ends: true, stop: "=a", want: []string{"a", "=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			call, _ := asks(t, func(w http.ResponseWriter, _ *http.Request) {
				stream := c.streams[n]
				n++
				if stream == "!" {
					w.WriteHeader(529)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for word := range strings.FieldsSeq(stream) {
					_, _ = w.Write([]byte("data: " + word + "\n\n")) // the client may be gone
				}
			})
			var got []string
			var failed error
			wire.Ask(t.Context(), wire.Backoff{Retries: 2, Base: time.Millisecond}, func(chunk llm.Chunk, err error) bool {
				text := "?"
				switch chunk := chunk.(type) {
				case llm.TextDelta:
					text = chunk.Text
				case llm.Retrying:
					text = "wait"
				case llm.Done:
					text = "=" + chunk.ID
				case nil:
					failed = err
					return true
				}
				got = append(got, text)
				return text != c.stop
			}, func() wire.Attempt {
				said := ""
				a := wire.Attempt{Call: call, Done: func() llm.Done { return llm.Done{ID: said} }}
				a.Add = func(data []byte) ([]llm.Chunk, bool, error) {
					switch word := string(data); word {
					case "done":
						return nil, true, nil
					case "bad":
						return nil, false, &llm.Error{Kind: llm.Server}
					default:
						said += word
						return []llm.Chunk{llm.TextDelta{Text: word}}, false, nil
					}
				}
				if c.ends {
					a.Call.Ended = func() bool { return true }
				}
				return a
			})
			if d := cmp.Diff(c.want, got); d != "" || (failed != nil) != (c.err != nil) || n != len(c.streams) {
				t.Errorf("%d attempts, %v %s", n, failed, d)
			}
		})
	}
}

// A consumer that leaves with the reply keeps the connection for its next turn, also when the response ends later.
func TestTheConnectionIsKeptBehindTheReply(t *testing.T) {
	left := make(chan struct{}, 1)
	from := map[string]bool{}
	call, _ := asks(t, func(w http.ResponseWriter, r *http.Request) {
		from[r.RemoteAddr] = true
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: done\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-left // what ends the response comes only now
	})
	for range 3 {
		wire.Ask(t.Context(), wire.Backoff{}, func(chunk llm.Chunk, err error) bool {
			if _, is := chunk.(llm.Done); !is || err != nil {
				t.Errorf("got %T, %v; want llm.Done", chunk, err)
			}
			left <- struct{}{}
			return false
		}, func() wire.Attempt {
			return wire.Attempt{
				Call: call,
				Add:  func([]byte) ([]llm.Chunk, bool, error) { return nil, true, nil },
				Done: func() llm.Done { return llm.Done{} },
			}
		})
	}
	if len(from) != 1 {
		t.Errorf("got %d connections for 3 turns, want 1", len(from))
	}
}
