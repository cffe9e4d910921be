package workspace

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A link that goes, or becomes a file, between the look at it and the reading of it is looked
// at again.
func TestALinkThatComesAndGoesIsFollowed(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "busy")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if i%2 == 0 {
				_ = os.Symlink("nowhere", name)
			} else {
				_ = os.WriteFile(name, nil, 0o600)
			}
			_ = os.Remove(name)
		}
	})
	for range 20_000 {
		if _, _, err := followLinks(name); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	wg.Wait()
}
