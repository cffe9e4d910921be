package help

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
)

const manual = "# Title\n\nA long paragraph with `code`, **weight** and a\n[link](other.md), which is wrapped.\n\n- one\n- two that is longer than the line\n\n" +
	"```sh\nroost list   # as it is, however long the line may be\n```\n\n| a | b |\n|---|---|\n"

func TestPageOfTheManual(t *testing.T) {
	if got := (Layout{}).Page(manual); got != strings.TrimRight(manual, "\n") {
		t.Errorf("without a terminal: got\n%s\nwant the Markdown itself", got)
	}
	want := "\x1b[1;4mTitle\x1b[0m\n\nA long paragraph with \x1b[36mcode\x1b[0m, \x1b[1mweight\x1b[0m and a\n" +
		"\x1b[4mlink\x1b[0m \x1b[2m(other.md)\x1b[0m, which is wrapped.\n\n• one\n• two that is longer than the line\n\n" +
		"  roost list   \x1b[2m# as it is, however long the line may be\x1b[0m\n\n" +
		"\x1b[1ma\x1b[0m\x1b[2m │\x1b[0m \x1b[1mb\x1b[0m\n\x1b[2m──┼──\x1b[0m"
	if got := (Layout{Style: display.Style{Theme: theme.Basic()}, Width: 40}).Page(manual); got != want {
		t.Errorf("on a terminal: got\n%q\nwant\n%q", got, want)
	}
}

func TestHelpOnANarrowTerminal(t *testing.T) {
	root := &cobra.Command{Use: "roost", Long: "Long words."}
	cmd := &cobra.Command{Use: "paint ID", Short: "Paint a fence", Example: "  roost paint 1", RunE: func(*cobra.Command, []string) error { return nil },
		Long: "Paint a fence in the colour that you name,\nand leave the gate as it is.\n\n  indented lines stay\n  as they are"}
	cmd.Flags().String("approve", "", "what may run")
	cmd.Flags().String("colour", "", "the `NAME` of a colour")
	root.AddCommand(cmd)
	text := Layout{Width: 50}.Text(cmd)
	for _, want := range []string{
		"Paint a fence in the colour that you name, and\nleave the gate as it is.\n\nUsage:\n  roost paint ID [flags]\n\nExamples:\n  roost paint 1\n\n  indented lines stay\n  as they are\n",
		"\nApprovals:\n", "\nMore flags:\n      --colour NAME", "edits  also write",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant %q in it", text, want)
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > 51 && !strings.Contains(line, "  ") {
			t.Errorf("got a line of %d columns, want at most 50: %s", len(line)-1, line)
		}
	}
	if list := (Layout{Width: 50}).Text(root); !strings.Contains(list, "Commands:\n  paint") {
		t.Errorf("got\n%s\nwant a command without a section in the list", list)
	}
}
