package object

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	childMain()
	goleak.VerifyTestMain(m)
}

// made opens a store in a folder that is not there yet.
func made(t testing.TB) *Store {
	t.Helper()
	return opened(t, filepath.Join(t.TempDir(), "store"))
}

func opened(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// must gives a value whose error is nil.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a batch.
func write(t testing.TB, s *Store, fill func(b *Batch)) {
	t.Helper()
	b := must[*Batch](t)(s.Begin(context.Background()))
	defer b.Discard()
	fill(b)
	ok(t, b.Close())
}

// commit writes a commit of files, by path of at most one folder, and gives its id.
func commit(t testing.TB, s *Store, files map[string]string, parents ...ID) (id ID) {
	t.Helper()
	write(t, s, func(b *Batch) { id = commitTo(t, b, files, parents...) })
	return id
}

func commitTo(t testing.TB, b *Batch, files map[string]string, parents ...ID) ID {
	t.Helper()
	folders := map[string][]TreeEntry{}
	for path, content := range files {
		dir, name := filepath.Split(path)
		blob := must[ID](t)(b.Blob([]byte(content)))
		folders[strings.TrimSuffix(dir, "/")] = append(folders[strings.TrimSuffix(dir, "/")], TreeEntry{name, ModeFile, blob})
	}
	root := folders[""]
	for dir, list := range folders {
		if dir != "" {
			root = append(root, TreeEntry{dir, ModeTree, must[ID](t)(b.Tree(list))})
		}
	}
	return must[ID](t)(b.Commit(Commit{Tree: must[ID](t)(b.Tree(root)), Parents: parents, At: time.Unix(1_700_000_000, 0), Message: "state"}))
}

// files reads back what commit wrote.
func files(t testing.TB, s *Store, id ID) map[string]string {
	t.Helper()
	ctx := context.Background()
	out := map[string]string{}
	var walk func(dir string, tree ID)
	walk = func(dir string, tree ID) {
		for _, e := range must[[]TreeEntry](t)(s.Tree(ctx, tree)) {
			if e.Mode == ModeTree {
				walk(dir+e.Name+"/", e.ID)
				continue
			}
			out[dir+e.Name] = string(must[[]byte](t)(s.Read(ctx, e.ID, 0)))
		}
	}
	walk("", must[Commit](t)(s.Commit(ctx, id)).Tree)
	return out
}

// git runs the real git in a store; the test is skipped where there is none.
func git(t testing.TB, s *Store, input string, args ...string) string {
	t.Helper()
	out, err := tryGit(t, s, input, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryGit(t testing.TB, s *Store, input string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	cmd := exec.Command("git", append([]string{"--git-dir", s.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "HOME="+t.TempDir(), "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), err
}

// fsck has git check everything, as strictly as it can.
func fsck(t testing.TB, s *Store) {
	t.Helper()
	if out := git(t, s, "", "fsck", "--strict", "--full", "--no-dangling", "--no-progress"); out != "" {
		t.Errorf("git fsck: %s", out)
	}
}

// text is content that a compressor does not make small, the same for one number.
func text(n, size int) string {
	var b strings.Builder
	for x := uint64(n)*2654435761 + 1; b.Len() < size; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%x\n", x)
	}
	return b.String()[:size]
}

// blobID is the id that content has as a blob.
func blobID(content []byte) ID { return hashOf(KindBlob, content).ID() }

// packsOf lists the names in objects/pack.
func packsOf(t testing.TB, s *Store) (list []string) {
	t.Helper()
	for _, d := range must[[]os.DirEntry](t)(readDir(s.packDir())) {
		list = append(list, d.Name())
	}
	return list
}
