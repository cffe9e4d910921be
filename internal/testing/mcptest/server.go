// Package mcptest is an MCP server for tests, built with the official library. It runs
// over stdio in a test's own binary that starts itself again, and over HTTP on loopback.
// Its tools do what servers do when all is well, and what they do when it is not.
package mcptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Env is the variable that makes a test's binary a server. Its value selects
// misbehaviour, as names separated by blanks:
//
//	junk       prints a line that is no message before the first one
//	silent     never answers
//	stubborn   does not end when its stdin does, nor on SIGTERM
//	deaf       stops reading its stdin after the greeting
//	many       has eighty tools more
//	dies       ends at once, with a message on stderr
//	breeds     starts another one of itself that is stubborn and silent, on its own
//	           stdout and stderr
const Env = "ROOSTTEST_MCP"

// LogEnv names a file to which each call of the tool "mark" adds a line.
const LogEnv = "ROOSTTEST_MCP_LOG"

// PNG is the picture of the tool "picture".
var PNG = []byte("\x89PNG\r\n\x1a\n-not-really-")

// Main serves and ends the process if the environment has Env. It belongs at the
// beginning of a TestMain.
func Main() {
	how, is := os.LookupEnv(Env)
	if !is {
		return
	}
	if err := serve(how); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// dies is set when the server ends with what it writes next.
var dies atomic.Bool

// last ends the server behind its last answer.
type last struct{ *os.File }

func (w last) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if dies.Load() && bytes.Contains(p, []byte("soon")) {
		os.Exit(4)
	}
	return n, err
}

func serve(how string) error {
	does := func(word string) bool { return strings.Contains(" "+how+" ", " "+word+" ") }
	if does("stubborn") {
		ignoreSignals()
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
	}
	if does("breeds") {
		if err := breed(); err != nil {
			return err
		}
	}
	switch {
	case does("dies"):
		return errors.New("cannot find the database\x1b[31m of " + os.Getenv("SERVER_TOKEN"))
	case does("silent"):
		time.Sleep(time.Hour)
	case does("junk"):
		fmt.Println("Welcome to the server, listening on stdio!")
		fmt.Println("{not json}")
	}
	s := New(how)
	if does("deaf") {
		err := s.Run(context.Background(), &mcp.IOTransport{Reader: &deaf{n: 3}, Writer: os.Stdout})
		time.Sleep(time.Hour)
		return err
	}
	err := s.Run(context.Background(), &mcp.IOTransport{Reader: os.Stdin, Writer: last{os.Stdout}})
	if does("stubborn") {
		time.Sleep(time.Hour)
	}
	return err
}

// breed starts a child without waiting for it. The child keeps the pipes open.
func breed() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(exe) //nolint:gosec // it is this very program
	child.Env = append(os.Environ(), Env+"=stubborn silent")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	return child.Start()
}

// deaf reads so many messages of stdin and no more.
type deaf struct{ n int }

func (d *deaf) Close() error { return nil }

func (d *deaf) Read(p []byte) (int, error) {
	for i := range p {
		if d.n == 0 {
			time.Sleep(time.Hour)
		}
		n, err := os.Stdin.Read(p[i : i+1])
		if err != nil || n == 0 {
			return i, err
		}
		if p[i] == '\n' {
			d.n--
			return i + 1, nil
		}
	}
	return len(p), nil
}

// Words are the arguments of most tools.
type Words struct {
	Text string `json:"text,omitempty" jsonschema:"what it is about"`
	N    int    `json:"n,omitempty"`
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// New makes the server; how is as in Env.
func New(how string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "mcptest", Version: "1"}, nil)
	add := func(name, about string, readOnly bool, f func(context.Context, Words) (*mcp.CallToolResult, error)) {
		t := &mcp.Tool{Name: name, Description: about}
		if readOnly {
			t.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
		}
		mcp.AddTool(s, t, func(ctx context.Context, _ *mcp.CallToolRequest, w Words) (*mcp.CallToolResult, any, error) {
			r, err := f(ctx, w)
			return r, nil, err
		})
	}
	add("echo", "Repeats its text.", true, func(_ context.Context, w Words) (*mcp.CallToolResult, error) {
		return textResult("echo: " + w.Text), nil
	})
	add("env", "Says what a variable holds.", false, func(_ context.Context, w Words) (*mcp.CallToolResult, error) {
		return textResult(w.Text + "=" + os.Getenv(w.Text)), nil
	})
	add("pid", "Says what process it is.", true, func(context.Context, Words) (*mcp.CallToolResult, error) {
		return textResult(strconv.Itoa(os.Getpid())), nil
	})
	add("mark", "Adds a line to the log.", false, func(_ context.Context, w Words) (*mcp.CallToolResult, error) {
		return textResult("marked"), mark(w.Text)
	})
	add("fail", "Fails.", false, func(_ context.Context, w Words) (*mcp.CallToolResult, error) {
		return nil, errors.New("it failed: " + w.Text)
	})
	add("slow", "Takes n milliseconds and logs when it is cancelled.", false, func(ctx context.Context, w Words) (*mcp.CallToolResult, error) {
		if err := mark("slow " + strconv.Itoa(os.Getpid())); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), mark("cancelled"))
		case <-time.After(time.Duration(w.N) * time.Millisecond):
			return textResult("done"), nil
		}
	})
	add("hang", "Never answers, whoever has had enough.", false, func(context.Context, Words) (*mcp.CallToolResult, error) {
		if err := mark("hang " + strconv.Itoa(os.Getpid())); err != nil {
			return nil, err
		}
		select {}
	})
	add("die", "Ends the server.", false, func(context.Context, Words) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(3)
		return nil, nil
	})
	add("die_later", "Ends the server after the answer.", false, func(context.Context, Words) (*mcp.CallToolResult, error) {
		dies.Store(true)
		return textResult("soon"), nil
	})
	add("flood", "Prints n MB to stderr.", false, func(_ context.Context, w Words) (*mcp.CallToolResult, error) {
		for range w.N {
			_, _ = os.Stderr.Write(bytes.Repeat([]byte("flood of words\n"), 1<<20/15))
		}
		return textResult("flooded"), nil
	})
	add("huge", "Answers with n bytes.", false, func(_ context.Context, w Words) (*mcp.CallToolResult, error) {
		return textResult("first\n" + strings.Repeat("0123456789abcde\n", w.N/16) + "last"), nil
	})
	add("picture", "Answers with a picture.", true, func(context.Context, Words) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "here it is"}, &mcp.ImageContent{Data: PNG, MIMEType: "image/png"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "note://1", Text: "a note"}},
			&mcp.ImageContent{Data: []byte("<svg>"), MIMEType: "image/svg+xml"},
		}}, nil
	})
	add("grow", "Adds a tool to the server.", false, func(context.Context, Words) (*mcp.CallToolResult, error) {
		s.AddTool(&mcp.Tool{Name: "grown", Description: "New.", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return textResult("grown"), nil
		})
		return textResult("one more"), nil
	})
	add("junk", "Prints what is no message and answers.", false, func(context.Context, Words) (*mcp.CallToolResult, error) {
		fmt.Println("just a log line")
		return textResult("after the junk"), nil
	})
	s.AddTool(&mcp.Tool{Name: "structured", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"b": 2, "a": []int{1}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "picture_twice", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		data := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100<<10)...)
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: data}},
			StructuredContent: map[string]any{"content": []any{map[string]any{"type": "image", "mimeType": "image/png", "data": data}}, "width": 4},
		}, nil
	})
	if strings.Contains(how, "many") {
		for i := range 80 {
			s.AddTool(&mcp.Tool{Name: fmt.Sprintf("extra_%02d", i), InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return textResult("extra"), nil
			})
		}
	}
	s.AddResource(&mcp.Resource{URI: "note://hello", Name: "hello", Description: "A greeting.", MIMEType: "text/plain"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "hello from the server"}, {URI: r.Params.URI, MIMEType: "image/png", Blob: PNG}}}, nil
		})
	return s
}

// mark adds a line to the log, if there is one.
func mark(text string) error {
	name := os.Getenv(LogEnv)
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, text)
	return errors.Join(err, f.Close())
}

// Handler serves s over streamable HTTP.
func Handler(s *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// SSEHandler serves s over the older transport.
func SSEHandler(s *mcp.Server) http.Handler {
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// Mute serves a handler until a call of a tool comes: neither that nor anything else from
// then on has an answer before its client gives up. called is closed with the first one.
func Mute(h http.Handler) (mute http.Handler, called <-chan struct{}) {
	first := make(chan struct{})
	once := sync.Once{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			once.Do(func() { close(first) })
		}
		select {
		case <-first:
			<-r.Context().Done()
			return
		default:
		}
		if err == nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		}
	}), first
}

// Hangup ends the sessions that a server has, as a restart of it would.
func Hangup(s *mcp.Server) {
	for session := range s.Sessions() {
		_ = session.Close()
	}
}
