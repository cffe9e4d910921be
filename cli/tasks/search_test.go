package tasks

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// Who said what stands in people's words, not in those of the files.
func TestWhoseAHitIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hit  api.Hit
		want string
	}{
		{api.Hit{Kind: "say:text", Number: 1}, "you"},
		{api.Hit{Kind: "say:text", Number: 7}, "model"},
		{api.Hit{Kind: "say:user_feedback", Number: 7}, "you"},
		{api.Hit{Kind: "ask:tool", Tool: "readfile"}, "read_file"},
		{api.Hit{Kind: "tool_use", Tool: "strangetool"}, "strangetool"},
		{api.Hit{Kind: "tool_result"}, "output"},
		{api.Hit{Kind: "say:rooignore_error"}, "rooignore error"},
		{api.Hit{Kind: "odd"}, "odd"},
	} {
		if got := whose(tt.hit); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.hit, got, tt.want)
		}
	}
}

func TestHitsFitIntoTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{30, 40, 80} {
		a, out, _ := clitest.New(t)
		a.OutTTY, a.Width, a.Flags.NoColour = true, width, true
		hit := api.Hit{Task: api.Summary{ID: "1", Title: strings.Repeat("title ", 9)}, Kind: "say:user_feedback", Number: 123456, Snippet: strings.Repeat("many words ", 9)}
		(&commands{App: a}).showHits(&cobra.Command{}, "many", []api.Hit{hit}, app.Listed{})
		for line := range strings.Lines(out.String()) {
			if n := display.Columns(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("got %d columns in a terminal of %d: %s", n, width, line)
			}
		}
	}
}

func TestMarkedWords(t *testing.T) {
	t.Parallel()
	style := display.Style{Theme: theme.Basic()}
	for _, tt := range []struct{ line, query, want string }{
		{"Auto-Deploy it", "deploy", "Auto-\x1b[1mDeploy\x1b[0m it"},
		{"a deploy of deployments", "deploy deployment", "a \x1b[1mdeploy\x1b[0m of \x1b[1mdeployment\x1b[0ms"},
		{"nothing", "deploy", "nothing"},
		{"İzmir: Deploy Ⱥ\xff it", "deploy it", "İzmir: \x1b[1mDeploy\x1b[0m Ⱥ\xff \x1b[1mit\x1b[0m"},
		{"the red fence", `"red fence"`, "the \x1b[1mred fence\x1b[0m"},
	} {
		if got := marked(tt.line, api.QueryTerms(tt.query), style); got != tt.want {
			t.Errorf("%s in %q: got %q, want %q", tt.query, tt.line, got, tt.want)
		}
	}
	if got := nearer("İ"+strings.Repeat(" before", 9)+" the red fence", []string{"red", "fence"}, 30); !strings.HasSuffix(got, " the red fence") || display.Columns(got) > 30 {
		t.Errorf("got %q, want it to begin near the first word", got)
	}
	if got := nearer("…a very long beginning of a line before the word deploy and more", []string{"deploy"}, 30); display.Columns(got) > 35 {
		t.Errorf("got %q, want it to begin near the word", got)
	}
}

// The pager's pattern holds letters and digits; what could mean something else fits anything.
func TestWordsForThePager(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"": "", "Deploy": "/\x0bdeploy\n", `"a b" x$y(z)`: "/\x0ba b|x.y.z.\n", "a\nq": "/\x0ba|q\n",
		"**bold** a**b*c ** ~/x": "/\x0bbold|a.?.?b.?c|.?.?|.x\n",
	} {
		if got := findInLess(query); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}
