package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// keeper is a server that does each request once for each key and path, as Roost's does, behind
// a proxy that cuts answers off.
type keeper struct {
	mu   sync.Mutex
	done map[string]string // path and key -> body
	took []string          // what was done, in order
	cuts int               // so many answers are lost
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	at := r.URL.Path + " " + r.Header.Get("Idempotency-Key")
	if before, known := k.done[at]; err != nil || known && before != string(body) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	} else if !known {
		k.done[at] = string(body)
		k.took = append(k.took, r.URL.Path+" "+string(body))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(api.Sent{Delivered: "started", Task: "t1", Run: "run1"})
}

// lossy is a desk whose words go to the keeper, over a proxy that loses answers.
type lossy struct {
	*desk
	c *client.Client
}

func (b *lossy) Send(ctx context.Context, id string, m api.Message) (api.Sent, error) {
	return b.c.Send(ctx, id, m)
}

func losing(t *testing.T) (*lossy, *keeper) {
	k := &keeper{done: map[string]string{}}
	far := httptest.NewServer(k)
	to, err := url.Parse(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(*http.Response) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.cuts--; k.cuts >= 0 {
			return errors.New("cut")
		}
		return nil
	}
	// The proxy answers with a page of its own when the connection breaks. The client repeats no request after status 520.
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(520)
	}
	near := httptest.NewServer(proxy)
	c, err := client.New(near.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		near.Close()
		far.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // the proxy's
	})
	return &lossy{newDesk(t), c}, k
}

// Words whose answer was lost are taken once, however often the person sends them again, also
// when the task works by then and they would go another way; other words are other words.
func TestWordsWhoseAnswerWasLostComeOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		cuts int
		say  []string
		work bool // the run that the first words started is heard of before the second
		took int
	}{
		{"answered", 0, []string{"a", "a"}, false, 2},
		{"lost once", 1, []string{"a", "a"}, false, 1},
		{"lost, and the run is heard of", 1, []string{"a", "a"}, true, 1},
		{"lost twice", 2, []string{"a", "a", "a"}, true, 1},
		{"meant again behind an answer", 1, []string{"a", "a", "a"}, true, 2},
		{"something else", 1, []string{"a", "b"}, true, 2},
		{"something else between", 1, []string{"a", "b", "a"}, true, 3},
	} {
		d, k := losing(t)
		k.cuts = c.cuts
		s := New(context.Background(), d, Options{})
		s.change(func(st *state) { st.Task = "t1" })
		for i, text := range c.say {
			err := s.prompt(context.Background(), text)
			if lost := i < c.cuts; lost != (err != nil) || lost && !client.Lost(err) {
				t.Errorf("%s: %q the %d. time: %v", c.name, text, i+1, err)
			}
			if c.work {
				s.change(func(st *state) { st.Working = true })
			}
		}
		s.Close()
		if k.mu.Lock(); len(k.took) != c.took {
			t.Errorf("%s: taken %q, want %d", c.name, k.took, c.took)
		}
		k.mu.Unlock()
	}
}

// So it is with words that break off what a run is at, and with those that somebody else's run
// takes in the end: a refusal is an answer.
func TestOwedWordsGoAsTheyWent(t *testing.T) {
	d, k := losing(t)
	k.cuts = 1
	s := New(context.Background(), d, Options{})
	defer s.Close()
	s.change(func(st *state) { st.Task, st.Working = "t1", true })
	if err := s.interject(context.Background(), "t1", "stop that"); !client.Lost(err) {
		t.Fatal(err)
	}
	s.change(func(st *state) { st.Working = false })
	if err := s.interject(context.Background(), "t1", "stop that"); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if want := []string{`/v1/tasks/t1/messages {"text":"stop that","delivery":"interrupt"}` + "\n"}; !slices.Equal(k.took, want) {
		t.Errorf("taken %q", k.took)
	}
}
