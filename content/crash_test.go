//go:build unix

package content_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/content/contenttest"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A process that is killed anywhere leaves nothing that the next collection does not remove: no bundle, no temporary
// file, no lease.
func TestKillsLeaveNoFiles(t *testing.T) {
	for place, line := range map[string]string{
		"content.bundle.written": "commit new", "content.name.written": "commit new", "content.merge.written": "commit new",
		"content.collect.written": "collect",
	} {
		t.Run(place, func(t *testing.T) {
			dir := filepath.Join(content.QuickDir(t), "store")
			s := fixture.Must[*content.Folder](t)(content.Open(dir))
			defer func() { fixture.NoError(t, s.Close()) }()
			for i := range 49 { // one more makes them be merged
				b := fixture.Must[content.Batch](t)(s.Begin(t.Context()))
				fixture.Must[content.Hash](t)(b.Add(fmt.Append(nil, i)))
				fixture.NoError(t, b.Close())
			}
			s.Settle()
			contenttest.StartChild(t, childEnv+"="+dir, place).Killed(line)
			fixture.Must[content.Collected](t)(s.Collect(t.Context(), content.CollectOptions{}))
			for name, most := range map[string]int{"bundles": 1, "temp": 0, "leases": 0} {
				if left := fixture.Must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(dir, name))); len(left) > most {
					t.Errorf("%s: got %v, want at most %d", name, left, most)
				}
			}
		})
	}
}
