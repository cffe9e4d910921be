package app

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// What is printed for the next page asks for the same as what gave this one: without its
// filters, a cursor would go on in another list.
func TestTheNextPageAsksForTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want string }{
		{"list --limit 3", "roost list --limit 3 --cursor 9"},
		{"list --cursor 3 --limit 3", "roost list --limit 3 --cursor 9"},
		{"--source roo list --tree --empty=false", "roost list --empty=false --source roo --tree --cursor 9"},
		{"search two words", "roost search two words --cursor 9"},
		{"search $(x) --source a;b", "roost search '$(x)' --source 'a;b' --cursor 9"},
		{"search --source roo -- -x y", "roost search --source roo --cursor 9 -- '-x' y"},
	} {
		root := &cobra.Command{Use: "roost"}
		root.PersistentFlags().String("source", "", "")
		told := ""
		for _, name := range []string{"list", "search"} {
			cmd := &cobra.Command{Use: name, RunE: func(cmd *cobra.Command, _ []string) error {
				told = NextPage(cmd, "9")
				return nil
			}}
			cmd.Flags().String("cursor", "", "")
			cmd.Flags().Int("limit", 0, "")
			cmd.Flags().Bool("tree", false, "")
			cmd.Flags().Bool("empty", true, "")
			root.AddCommand(cmd)
		}
		root.SetArgs(strings.Fields(tt.given))
		fixture.NoError(t, root.Execute())
		if told != tt.want {
			t.Errorf("%s: %s, want %s", tt.given, told, tt.want)
		}
	}
}
