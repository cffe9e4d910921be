package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/workspace/usergit"
)

// quiet are settings for reading objects and the index. usergit.Command adds settings that keep git from running
// programs and from fetching objects that a partial clone lacks.
var quiet = []string{"--no-replace-objects", "--literal-pathspecs", "-c", "core.untrackedCache=false", "-c", "index.threads=1"}

const (
	gitTime  = 30 * time.Second
	maxRepos = 64      // repositories of one workspace that are read
	maxIndex = 1 << 28 // bytes of an index that is listed
)

// userGit holds the user's repositories, as far as they were read.
type userGit struct {
	program string
	repos   map[string]*repo // by folder, absolute
}

// repo is one repository of the user.
type repo struct {
	dir    string // the folder in which git runs: the workspace, or a folder in it
	index  stat   // of the index, when it was read
	read   int64
	blobs  map[[20]byte]bool // blobs that the index names
	absent map[[20]byte]bool // blobs that it names and that do not exist: of a partial clone

	tracked   map[string]bool // the recorded paths in the index
	uncovered bool            // addTracked has added those of tracked that .gitignore hides
}

// enclosing returns the repository around a folder, and the folders from its top down to the folder; none when the
// folder itself is the top of a repository, or in no repository.
func enclosing(root string) (top string, down []string) {
	for at := root; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, down
		}
		if filepath.Dir(at) == at {
			return "", nil
		}
		down = append([]string{filepath.Base(at)}, down...)
	}
}

// indexOf returns the path of the index of a repository with this top; "" when it cannot be determined.
func indexOf(top string) string {
	git := filepath.Join(top, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return filepath.Join(git, "index")
	}
	if !info.Mode().IsRegular() || info.Size() > 8192 {
		return ""
	}
	text, _ := inputfile.Read(git) // of a submodule or a worktree; without a text, it is none
	dir, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	return filepath.Join(dir, "index")
}

// find returns the git program. Without git fewer contents are available, which is no error.
func (u *userGit) find() string {
	if u.program != "" {
		return strings.TrimPrefix(u.program, "none")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return "" // the error also comes with a git of the present folder
	}
	return git
}

// refresh reads the indexes of the repositories with these tops that changed since the last read. tops maps each to
// the folder in which git runs. An unreadable repository counts as empty: its files are kept like those of no
// repository.
func (u *userGit) refresh(ctx context.Context, root string, tops map[string]string) {
	have := map[string]*repo{}
	git := u.find()
	order := slices.Sorted(maps.Keys(tops)) // with a repository that is left out, contents that an earlier survey found in it are lost
	sort.SliceStable(order, func(i, j int) bool { return u.repos[order[i]] != nil && u.repos[order[j]] == nil })
	for _, top := range order {
		if git == "" || len(have) >= maxRepos {
			break
		}
		index := indexOf(top)
		info, err := os.Stat(index)
		if index == "" || err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
			continue
		}
		now := statOf(info)
		if old := u.repos[top]; old != nil && old.index == now && now.settled(old.read) {
			have[top] = old
			continue
		}
		r := &repo{dir: tops[top], index: now, read: time.Now().UnixNano()}
		if err := r.list(ctx, git, root); err != nil && ctx.Err() != nil {
			break
		}
		have[top] = r // after an error it is empty, and is read again when its index changes
	}
	u.repos = have
}

// list reads the index.
func (r *repo) list(ctx context.Context, git, root string) error {
	below, err := filepath.Rel(root, r.dir)
	if err != nil {
		return err
	}
	below = Recorded(below)
	out, err := run(ctx, git, r.dir, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	r.blobs, r.absent, r.tracked = map[[20]byte]bool{}, map[[20]byte]bool{}, map[string]bool{}
	for line := range bytes.SplitSeq(out, []byte{0}) {
		// MODE SP ID SP STAGE TAB PATH
		head, name, ok := bytes.Cut(line, []byte{'\t'})
		fields := bytes.Fields(head)
		if !ok || len(fields) != 3 || bytes.Equal(fields[0], []byte("160000")) {
			continue
		}
		id, ok := parseID(fields[1])
		if !ok {
			continue // a repository with SHA-256 names is no help
		}
		r.blobs[id] = true
		r.tracked[path.Join(below, Recorded(string(name)))] = true
	}
	return nil
}

// parseID reads git's name of an object.
func parseID(text []byte) (id [20]byte, ok bool) {
	if len(text) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], text)
	return id, err == nil
}

// has reports whether an index names a content.
func (u *userGit) has(id [20]byte) bool {
	for _, r := range u.repos {
		if r.blobs[id] && !r.absent[id] {
			return true
		}
	}
	return false
}

// check finds out whether contents that indexes name exist, and returns those that do not.
func (u *userGit) check(ctx context.Context, ids [][20]byte) (lost map[[20]byte]bool) {
	lost = api.SetOf(ids)
	git := u.find()
	for _, r := range u.repos {
		ask := question(ids, func(id [20]byte) bool { return lost[id] && r.blobs[id] })
		if ask.Len() == 0 {
			continue
		}
		out, err := run(ctx, git, r.dir, ask, "cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer")
		if err != nil {
			continue
		}
		for line := range bytes.SplitSeq(out, []byte{'\n'}) {
			name, kind, _ := bytes.Cut(line, []byte{' '})
			if id, ok := parseID(name); ok && string(kind) == "blob" {
				delete(lost, id)
			}
		}
	}
	// A content that git did not confirm counts as missing, even when git could not be run.
	for _, r := range u.repos {
		for id := range lost {
			if r.blobs[id] {
				r.absent[id] = true
			}
		}
	}
	return lost
}

// question asks git cat-file for those of the contents that wanted selects.
func question(ids [][20]byte, wanted func([20]byte) bool) *bytes.Buffer {
	var ask bytes.Buffer
	for _, id := range ids {
		if wanted(id) {
			ask.WriteString(hex.EncodeToString(id[:]) + "\n")
		}
	}
	return &ask
}

// copy passes to take, one by one, the contents that a repository has. If take does not read a content to its end,
// copy skips the rest.
func (u *userGit) copy(ctx context.Context, ids [][20]byte, take func(id [20]byte, size int64, r io.Reader) error) error {
	left := api.SetOf(ids)
	git := u.find()
	for _, r := range u.repos {
		if len(left) == 0 || git == "" {
			break
		}
		ask := question(ids, func(id [20]byte) bool { return left[id] })
		if err := r.copy(ctx, git, ask, func(id [20]byte, size int64, from io.Reader) error {
			if !left[id] {
				return nil // git returned more than was requested
			}
			delete(left, id)
			return take(id, size, from)
		}); err != nil {
			return err
		}
	}
	return nil
}

// takeError is an error of take, not of git.
type takeError struct{ error }

func (r *repo) copy(ctx context.Context, git string, ask io.Reader, take func([20]byte, int64, io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*gitTime)
	defer cancel()
	cmd := usergit.Command(ctx, git, r.dir, slices.Concat(quiet, []string{"cat-file", "--batch", "--buffer"})...)
	cmd.Stdin = ask
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return nil //nolint:nilerr // a git that does not start has nothing
	}
	defer context.AfterFunc(ctx, func() { _ = out.Close() })() // in case another process holds it open
	err = stream(bufio.NewReaderSize(out, 1<<16), take)
	cancel()
	_ = cmd.Wait() // git's own result does not matter: what was read was checked
	if mine, is := errors.AsType[takeError](err); is {
		return mine.error
	}
	return nil // git ended early, or printed nonsense: the rest is not there
}

// stream reads what cat-file --batch writes.
func stream(out *bufio.Reader, take func([20]byte, int64, io.Reader) error) error {
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return err
		}
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == "missing" {
			continue
		}
		bad := fmt.Errorf("git cat-file printed %.80q", line)
		if len(fields) != 3 {
			return bad
		}
		id, ok := parseID([]byte(fields[0]))
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if !ok || err != nil || size < 0 {
			return bad
		}
		body := &io.LimitedReader{R: out, N: size}
		if fields[1] == "blob" {
			if err := take(id, size, body); err != nil {
				return takeError{err}
			}
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
		if _, err := out.Discard(1); err != nil {
			return err
		}
	}
}

func run(ctx context.Context, git, dir string, in io.Reader, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	return usergit.Read(ctx, git, dir, in, slices.Concat(quiet, args)...)
}
