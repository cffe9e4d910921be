package archtest

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longest bounds the walks of ARCHITECTURE.md. Whoever makes one shorter lowers it here; nobody raises one.
var longest = map[string]int{
	"A message, from POST to disk to a browser": 14,
	"A list, from command to SQLite and back":   9,
	"A rewind with files, over HTTP":            14,
}

func TestWalks(t *testing.T) {
	found, lengths, err := CheckWalks(os.DirFS("../.."), "ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
	for heading, most := range longest {
		if n := lengths[heading]; n == 0 || n > most {
			t.Errorf("the walk %q: got %d steps, want 1 to %d", heading, n, most)
		}
	}
}

func TestCheckWalksReports(t *testing.T) {
	house := map[string]string{
		"cli/a.go": "package cli\n\nfunc Run() { c := client.New(); c.Ask() }\n\nfunc alone() {}\n",
		"client/a.go": "package client\n\nfunc New() *Client { return nil }\n\n" +
			"func (c *Client) Ask() { http.DefaultClient.Do(nil) }\n",
		"server/a.go": "package server\n\ntype Server struct{ act func() }\n\n" +
			"func New() *Server { return &Server{act: list} }\n\n" +
			"func (s *Server) answer(w http.ResponseWriter) { s.act() }\n\nfunc list() { queue <- 1; read() }\n\n" +
			"func work() { <-queue }\n\nfunc read() int { return 1 }\n\nfunc other() { work() }\n",
		"server/a_test.go": "package server\n\nfunc onlyTest() {}\n",
	}
	const whole = "1. `cli.Run` begins.\n2. `client.Client.Ask` asks over HTTP.\n3. `server.Server.answer` hands over `act`.\n" +
		"4. `server.list` hands over `queue`.\n5. `server.work` works, to its caller.\n6. `server.other` ends.\n"
	for _, c := range []struct {
		name, page string
		want       []string
	}{
		{"all steps", "## A walk\n\n" + whole, nil},
		{"the last line may end the page", "1. `cli.Run`\n2. `client.New` makes it.", nil},
		{"two walks", "1. `cli.Run`\n2. `client.New`\n\n1. `server.list`\n2. `server.read`\n", nil},
		{"a function is gone", "1. `cli.Run`\n2. `client.Client.Send`\n3. `server.onlyTest`\n", []string{
			"PAGE.md:2: names client.Client.Send, which is not there", "PAGE.md:3: names server.onlyTest, which is not there",
		}},
		{"a method is no function", "1. `client.Ask`\n", []string{"PAGE.md:1: names client.Ask, which is not there"}},
		{"a call is gone", "1. `cli.alone`\n2. `client.Client.Ask`\n", []string{"PAGE.md:1: cli.alone does not call client.Client.Ask"}},
		{"a function of another package has its name", "1. `server.Server.answer`\n2. `client.New`\n", []string{
			"PAGE.md:1: server.Server.answer does not call client.New",
		}},
		{"nothing is handed over", "1. `cli.Run` hands over `queue`.\n2. `server.work`\n", []string{
			"PAGE.md:1: cli.Run hands over queue, which it and server.work do not both use",
		}},
		{"the field holds another function", "1. `server.Server.answer` hands over `act`.\n2. `server.read`\n", []string{
			"PAGE.md:1: server.Server.answer hands over act, which it and server.read do not both use",
		}},
		{"the caller does not call", "1. `server.work` to its caller.\n2. `server.list`\n", []string{
			"PAGE.md:1: server.list does not call server.work",
		}},
		{"no request", "1. `cli.Run` asks over HTTP.\n2. `server.Server.answer`\n", []string{
			"PAGE.md:1: cli.Run sends no request, or server.Server.answer answers none",
		}},
		{"no answer", "1. `client.Client.Ask` asks over HTTP.\n2. `server.list`\n", []string{
			"PAGE.md:1: client.Client.Ask sends no request, or server.list answers none",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, _, err := CheckWalks(treeOf(house, map[string]string{"PAGE.md": c.page}), "PAGE.md")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, texts(found)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	_, lengths, err := CheckWalks(treeOf(house, map[string]string{"PAGE.md": "## A walk\n\n" + whole}), "PAGE.md")
	if diff := cmp.Diff(map[string]int{"A walk": 6}, lengths); err != nil || diff != "" {
		t.Errorf("%v: -want +got\n%s", err, diff)
	}
}

func TestCheckWalksNeedsWhatItReads(t *testing.T) {
	if _, _, err := CheckWalks(treeOf(nil), "PAGE.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	broken := map[string]string{"PAGE.md": "1. `store.Open`\n", "store/a.go": "packag"}
	if _, _, err := CheckWalks(treeOf(broken), "PAGE.md"); err == nil {
		t.Error("a file that cannot be parsed was accepted")
	}
}
