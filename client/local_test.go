package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A handler of this process is asked as one far away is.
func TestLocal(t *testing.T) {
	c := Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Host != "localhost" || r.RemoteAddr != LocalPeer || r.RequestURI != "/v1/x?a=b" {
			t.Errorf(`got %q %q %q, want r.Host = "localhost" and r.RemoteAddr = LocalPeer and r.RequestURI = "/v1/x?a=b"`,
				r.Host, r.RemoteAddr, r.RequestURI)
		}
		w.Header().Set("X-Seen", "yes")
		say(w, 201, map[string]string{"auth": r.Header.Get("Authorization"), "body": string(body)})
		w.Header().Set("X-Late", "no")
	}), "t")
	var got struct{ Auth, Body string }
	head, err := c.Ask(soon(t), Request{Method: "POST", Path: "/v1/x", Query: map[string][]string{"a": {"b"}}, Body: 1}, &got)
	if err != nil || got.Auth != "Bearer t" || got.Body != "1\n" || head.Get("X-Seen") != "yes" || head.Get("X-Late") != "" {
		t.Error(got, head, err)
	}
}

// What a handler writes is there at once, and who stops reading ends it.
func TestLocalStreams(t *testing.T) {
	ended := make(chan error, 1)
	step := make(chan struct{})
	c := Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "one")
		_ = http.NewResponseController(w).Flush()
		<-step
		var err error
		for err == nil { // more than anybody reads
			_, err = io.WriteString(w, strings.Repeat("x", 1000))
		}
		ended <- err
	}), "")
	resp, err := c.Open(soon(t), Request{Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "one\n" {
		t.Error(line, err)
	}
	close(step)
	resp.Body.Close() // waits for the handler
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the handler wrote on")
		}
	default:
		t.Error("the handler still works")
	}
}

// A handler that breaks breaks its answer, not the process; one that is slow is left.
func TestLocalFailures(t *testing.T) {
	c := Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	}), "")
	resp, err := c.Open(soon(t), Request{Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); string(text) != "half" || !errors.Is(err, errBroken) {
		t.Errorf("got %q, %v, want string(text) = \"half\" and errors.Is(err, errBroken)", text, err)
	}
	resp.Body.Close()

	ctx, cancel := context.WithCancel(soon(t))
	c = Local(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}), "")
	if _, err := c.Task(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
