package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// fetch [CODE] PATH asks the server that wrote its first line into serve.out, and
// waits for that line. The body goes into the file http, the headers into head. The path
// may name the task as $ID.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	want := 200
	if len(args) == 2 {
		want, args = code(ts, args[0]), args[1:]
	}
	if len(args) != 1 {
		ts.Fatalf("usage: fetch [CODE] PATH")
	}
	var hello struct{ URL, Token string }
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs("serve.out"))
		if line, _, ok := strings.Cut(string(text), "\n"); err == nil && ok {
			ts.Check(json.Unmarshal([]byte(line), &hello))
			break
		}
		if time.Now().After(end) {
			ts.Fatalf("the server says nothing: %v", err)
		}
	}
	req, err := http.NewRequest("GET", hello.URL+args[0], nil)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+hello.Token)
	resp, err := (&http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	var body []byte
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		// Up to the end of what the scripts wait for: a stream has no end, and a read ends anywhere.
		ended := func() bool {
			_, last, ok := strings.Cut(string(body), "event: run.ended")
			return ok && strings.Contains(last, "\n\n")
		}
		for buf := make([]byte, 4096); !ended(); {
			n, err := resp.Body.Read(buf)
			body = append(body, buf[:n]...)
			ts.Check(err)
		}
	} else {
		body, err = io.ReadAll(resp.Body)
		ts.Check(err)
	}
	ts.Logf("[%s]\n%s", resp.Status, body)
	if resp.StatusCode != want {
		ts.Fatalf("%s answers %s, want %d", args[0], resp.Status, want)
	}
	write(ts, "http", body)
	var head strings.Builder
	ts.Check(resp.Header.Write(&head))
	write(ts, "head", []byte(head.String()))
}
