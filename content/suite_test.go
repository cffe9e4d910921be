package content_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/content/contenttest"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

const childEnv = "CONTENT_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		s, err := content.Open(dir)
		if err != nil {
			panic(err)
		}
		contenttest.Serve(s)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestSuite(t *testing.T) {
	contenttest.Run(t, func(t *testing.T) contenttest.Backend {
		dir := filepath.Join(content.QuickDir(t), "store")
		open := func(t testing.TB) *content.Folder { return fixture.Must[*content.Folder](t)(content.Open(dir)) }
		return contenttest.Backend{
			Open: func(t testing.TB) content.Store { return open(t) },
			Start: func(t testing.TB, fail string) *contenttest.Child {
				return contenttest.StartChild(t, childEnv+"="+dir, fail)
			},
			Damage: func(t testing.TB, h content.Hash) { open(t).Damage(t, h) },
			Lose:   func(t testing.TB, h content.Hash) { open(t).Lose(t, h) },
			Commits: []string{
				"content.bundle.written", "content.bundle.named", "content.name.written", "content.name.named",
			},
			Collects: []string{"content.collect.written", "content.collect.removing"},
		}
	})
}
