package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/content"
	contentpg "github.com/roost-dev/roost/content/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/migrate"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/drafts"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/rootkey"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// The arguments of a child that migrates and is killed.
const (
	childFrom = "MIGRATE_TEST_FROM"
	childTo   = "MIGRATE_TEST_TO"
	childDir  = "MIGRATE_TEST_DIR"
)

func TestMain(m *testing.M) {
	if from := os.Getenv(childFrom); from != "" {
		os.Exit(child(from, os.Getenv(childTo), os.Getenv(childDir)))
	}
	code := m.Run()
	pgtest.StopShared()
	os.Exit(code)
}

func child(from, to, dir string) int {
	ctx := context.Background()
	source, _, err := openEnd(ctx, from, dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	target, _, err := openEnd(ctx, to, dir)
	if err == nil {
		_, err = migrate.Run(ctx, source, target, api.NewMigration{})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// openEnd opens a folder or a database. dir holds the keys of both.
func openEnd(ctx context.Context, at, dir string) (e migrate.End, closing func(), err error) {
	o := store.Options{
		Root:    at,
		State:   filepath.Join(dir, "state"),
		Program: "migrate test",
		Now:     func() int64 { return storetest.TS0 + 100_000 },
	}
	closing = func() {}
	var stores checkpoint.Stores
	if strings.Contains(at, "://") {
		db, err := database.Open(ctx, at)
		if err != nil {
			return e, nil, err
		}
		keys, err := rootkey.Join(ctx, db, filepath.Join(dir, "group.json"))
		if err != nil {
			return e, nil, err
		}
		shared := contentpg.New(db, contentpg.Options{})
		o.Root, o.Shared, o.Keys, stores = filepath.Join(dir, "server"), postgres.Open(ctx, db, postgres.Options{}), keys, shared
		closing = func() {
			_ = shared.Close(ctx)
			o.Shared.Close()
			db.Close()
		}
	}
	s, err := store.Open(o)
	if err != nil {
		return e, nil, err
	}
	s.SkipWaits()
	return migrate.End{Store: s, Contents: checkpoint.Place{Dir: filepath.Join(o.Root, "checkpoints"), Stores: stores}}, closing, nil
}

// bench is a root, a database and another root, with the keys of one user.
type bench struct {
	*testing.T
	dir              string
	root, back, data string
}

func newBench(t *testing.T) *bench {
	dir := t.TempDir()
	b := &bench{
		T:    t,
		dir:  dir,
		root: filepath.Join(dir, "root"),
		back: filepath.Join(dir, "back"),
		data: pgtest.Shared(t).Database(t),
	}
	storetest.Check(t, database.Migrate(t.Context(), b.data))
	return b
}

func (b *bench) open(at string) migrate.End {
	b.Helper()
	e, closing, err := openEnd(context.WithoutCancel(b.Context()), at, b.dir)
	storetest.Check(b, err)
	b.Cleanup(closing)
	return e
}

// run migrates, and wants nothing to be left out.
func (b *bench) run(from, to string, o api.NewMigration) api.Migration {
	b.Helper()
	m, err := migrate.Run(b.Context(), b.open(from), b.open(to), o)
	storetest.Check(b, err)
	if len(m.Problems)+len(m.Left) > 0 {
		b.Errorf("from %s: problems %v, left %v", from, m.Problems, m.Left)
	}
	return m
}

// say adds a message to both histories of a task, with a payload that is kept apart.
func say(t testing.TB, k *store.Task, text string) {
	t.Helper()
	n := len(k.State().UI())
	storetest.Commit(t, k, task.UI, storetest.UIRow(n, text+strings.Repeat(" and so on", 40_000)))
	storetest.Commit(t, k, task.API, storetest.APIRow(n, "user", text))
}

// fill makes tasks of every kind in a root: a usual one, a fork of it and a fork of the fork, one in the trash, an imported
// one without a journal, labels, a draft with an image, and contents of a checkpoint.
func (b *bench) fill() {
	b.Helper()
	e := b.open(b.root)
	s, ctx := e.Store, b.Context()
	k := storetest.Create(b, s, "usual")
	say(b, k, "first")
	say(b, k, "second")
	storetest.Close(b, k)
	for _, id := range []string{"fork", "fork-of-fork"} {
		from := map[string]string{"fork": "usual", "fork-of-fork": "fork"}[id]
		_, finish, err := history.Fork(ctx, s, s.OwnRef(from), history.ForkOptions{ID: id})
		storetest.Check(b, err)
		storetest.Check(b, finish(ctx))
		k := storetest.Own(b, s, id).Task
		say(b, k, "in "+id)
		storetest.Close(b, k)
	}
	storetest.Close(b, storetest.Create(b, s, "gone"))
	storetest.Delete(b, s, "gone")
	for _, id := range []string{"imported", "imported-gone"} {
		dir := filepath.Join(s.TasksDir(), id)
		storetest.Check(b, os.MkdirAll(dir, 0o700))
		storetest.Write(b, dir, "ui_messages.json", storetest.Array(storetest.UIRow(0, "hello")))
		storetest.Write(b, dir, "api_conversation_history.json", storetest.Array(storetest.APIRow(0, "user", "hello")))
	}
	storetest.Delete(b, s, "imported-gone")
	k = storetest.Own(b, s, "usual").Task
	storetest.Close(b, k)
	dir := s.OwnRef("usual").Dir // another program has added a row since
	ui := storetest.Read(b, dir, "ui_messages.json")
	storetest.Write(b, dir, "ui_messages.json", strings.TrimSuffix(strings.TrimSpace(ui), "]")+","+storetest.UIRow(9, "added elsewhere")+"]")
	storetest.Label(b, s, "usual", labels.Change{Title: new("with a title")})

	image := drafts.Image{Media: "image/png", Bytes: []byte("an image")}
	name := drafts.Name(image.Bytes)
	_, err := drafts.Of(s).Change(ctx, api.Draft{Task: "roost:usual", Text: "not sent", Images: []api.DraftImage{{Name: name}}}, "",
		map[string]drafts.Image{name: image})
	storetest.Check(b, err)
	_, err = drafts.Of(s).Change(ctx, api.Draft{Text: "build a shed"}, "", nil)
	storetest.Check(b, err)

	b.checkpoint("usual", "before", "")
	b.checkpoint("usual", "after", "before")
}

// checkpoint keeps a file for a task as a checkpoint does: a manifest that follows the one before it.
func (b *bench) checkpoint(owner, text, parent string) {
	b.Helper()
	dir := filepath.Join(b.root, "checkpoints", "workspace-1")
	storetest.Check(b, os.MkdirAll(dir, 0o700))
	s := fixture.Must[*content.Folder](b)(content.Open(dir))
	defer s.Close()
	w := fixture.Must[content.Batch](b)(s.Begin(b.Context()))
	m := content.Manifest{Title: text, Files: []content.File{{Path: "a.txt", Hash: fixture.Must[content.Hash](b)(w.Add([]byte(text)))}}}
	if parent != "" {
		m.Parents = []content.Hash{fixture.Must[content.Hash](b)(s.Name(b.Context(), owner))}
	}
	h := fixture.Must[content.Hash](b)(w.AddManifest(m))
	storetest.Check(b, w.Close())
	storetest.Check(b, s.SetName(b.Context(), owner, h))
}

// holds is what an end holds: the sums of all journals, the newest messages, drafts, and contents.
func (b *bench) holds(at string) map[string]string {
	b.Helper()
	e, out := b.open(at), map[string]string{}
	s, ctx := e.Store, b.Context()
	if d := fixture.Must[api.Draft](b)(drafts.Of(s).Read(ctx, "")); d.Revision != "" {
		out["draft of a new task"] = d.Text
	}
	refs := append(fixture.Must[[]store.Ref](b)(s.Every(ctx)), s.OverlayRef())
	for _, ref := range refs {
		if !s.HasJournal(ctx, ref) || strings.HasPrefix(filepath.Base(ref.Log), ".fork-") {
			continue
		}
		log := fixture.Must[journal.Stored](b)(s.OpenJournal(ctx, ref))
		name := filepath.Base(ref.Log)
		sums := fixture.Must[[]journal.Sum](b)(journal.Sums(ctx, log))
		out[name] = fmt.Sprintf("%d %x", sums[0].Head, sums[0].Hash)
		storetest.Check(b, log.Close())
		if !store.IsOverlay(ref) && filepath.Dir(ref.Log) == s.TasksDir() {
			v := fixture.Must[*store.View](b)(s.Read(ctx, ref))
			out[name+" messages"] = v.Summary.Title + " " + storetest.Rows(v.State)
			storetest.Check(b, v.Close())
		}
		d := fixture.Must[api.Draft](b)(drafts.Of(s).Read(ctx, "roost:"+ref.ID))
		if d.Revision != "" {
			out[name+" draft"] = d.Text
			for _, i := range d.Images {
				image := fixture.Must[drafts.Image](b)(drafts.Of(s).ReadImage(ctx, "roost:"+ref.ID, i.Name))
				out[name+" draft"] += " " + image.Media + " " + string(image.Bytes)
			}
		}
	}
	for _, name := range fixture.Must[[]string](b)(e.Contents.List(ctx)) {
		var c content.Store
		if e.Contents.Stores != nil {
			c = e.Contents.Stores.Store(name)
		} else {
			c = fixture.Must[*content.Folder](b)(content.Open(filepath.Join(e.Contents.Dir, name)))
		}
		for owner, n := range fixture.Must[map[string]content.Named](b)(c.Names(ctx)) {
			text := ""
			for h := n.Manifest; h != ""; {
				m := fixture.Must[content.Manifest](b)(c.Manifest(ctx, h))
				text += string(fixture.Must[[]byte](b)(c.Read(ctx, m.Files[0].Hash, 0))) + " "
				h = ""
				if len(m.Parents) > 0 {
					h = m.Parents[0]
				}
			}
			out[name+" "+owner] = text
		}
		storetest.Check(b, c.Close())
	}
	return out
}

func TestThereAndBack(t *testing.T) {
	b := newBench(t)
	b.fill()
	if m := b.run(b.root, b.data, api.NewMigration{DryRun: true}); m.Copied != 7 || m.Commits == 0 {
		t.Errorf("a dry run would copy %d journals; want 7", m.Copied)
	}
	if got := b.holds(b.data); len(got) > 0 {
		t.Errorf("a dry run wrote %v", got)
	}
	m := b.run(b.root, b.data, api.NewMigration{})
	if m.Copied != 7 || m.Contents != 4 || m.Drafts != 2 || m.Extended+m.Already+m.Trusted != 0 {
		t.Errorf("copied: %+v", m)
	}
	want := b.holds(b.root)
	for _, name := range []string{"usual messages", "usual draft", "overlay", "imported", "workspace-1 usual"} {
		if want[name] == "" {
			t.Fatalf("the root lacks %q of %v", name, want)
		}
	}
	if d := cmp.Diff(want, b.holds(b.data)); d != "" {
		t.Errorf("-root +database\n%s", d)
	}
	if !strings.Contains(want["usual messages"], "added elsewhere") {
		t.Error("a row that another program has added is missing")
	}
	for _, at := range []string{b.root, b.data} {
		s := b.open(at).Store
		if _, err := trash.Restore(t.Context(), s, "imported-gone"); err != nil {
			t.Fatal(err)
		}
		if got := storetest.Rows(storetest.View(t, s, "imported-gone").State); !strings.Contains(got, "hello") {
			t.Errorf("%s: out of the trash came %q", at, got)
		}
	}
	want = b.holds(b.data)
	b.run(b.data, b.back, api.NewMigration{})
	if d := cmp.Diff(want, b.holds(b.back)); d != "" {
		t.Errorf("-root +back\n%s", d)
	}
	for _, name := range []string{"usual", "fork", "fork/base", "fork-of-fork", "fork-of-fork/base", "fork-of-fork/base/base"} {
		was := fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(b.root, "tasks", name, "journal.jsonl")))
		is := fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(b.back, "tasks", name, "journal.jsonl")))
		if !bytes.HasPrefix(was, is) || len(is) == 0 || !strings.Contains(name, "base") && len(is) < len(was) {
			t.Errorf("%s: %d bytes of the journal are back, of %d", name, len(is), len(was))
		}
	}
	if m := b.run(b.data, b.back, api.NewMigration{}); m.Already != 7 || m.Copied+m.Extended+m.Contents+m.Drafts != 0 {
		t.Errorf("again: %+v", m)
	}
}

// A later migration brings what came since, in both directions, and leaves alone what went on at both ends.
func TestLaterMigrations(t *testing.T) {
	b := newBench(t)
	b.fill()
	b.run(b.root, b.data, api.NewMigration{})
	grow := func(at string, ids ...string) {
		t.Helper()
		s := b.open(at).Store
		for _, id := range ids {
			k := fixture.Must[*store.Owned](t)(s.Own(t.Context(), s.OwnRef(id))).Task
			say(t, k, "more "+id)
			storetest.Close(t, k)
		}
	}
	grow(b.root, "usual", "fork-of-fork")
	b.checkpoint("usual", "later", "after")
	if m := b.run(b.root, b.data, api.NewMigration{}); m.Extended != 2 || m.Already != 5 || m.Contents != 2 {
		t.Errorf("with more: %+v", m)
	}
	if d := cmp.Diff(b.holds(b.root), b.holds(b.data)); d != "" {
		t.Errorf("-root +database\n%s", d)
	}

	grow(b.data, "usual", "fork-of-fork", "imported")
	if m := b.run(b.root, b.data, api.NewMigration{}); m.Already != 7 {
		t.Errorf("over a copy that went on: %+v", m)
	}
	if m := b.run(b.data, b.root, api.NewMigration{}); m.Extended != 3 || m.Already != 4 {
		t.Errorf("back where they came from: %+v", m)
	}
	if d := cmp.Diff(b.holds(b.data), b.holds(b.root)); d != "" {
		t.Errorf("-database +root\n%s", d)
	}
	grow(b.root, "usual") // its owner takes over what was appended beside it

	grow(b.data, "usual")
	before := b.holds(b.data)
	m, err := migrate.Run(t.Context(), b.open(b.root), b.open(b.data), api.NewMigration{})
	if err != nil || len(m.Problems) != 1 || m.Problems[0].Task != "usual" || !strings.Contains(m.Problems[0].Problem, "was continued there") {
		t.Errorf("both went on: %+v, %v", m, err)
	}
	if d := cmp.Diff(before, b.holds(b.data)); d != "" {
		t.Errorf("a refused copy changed the target: -before +after\n%s", d)
	}
}

// A task that was deleted or restored since it was copied is so in the target, too, and once. Another task of its id stays.
func TestFollowsTheTrash(t *testing.T) {
	b := newBench(t)
	b.fill()
	places := func(at string) (out []string) {
		s := b.open(at).Store
		for _, ref := range fixture.Must[[]store.Ref](t)(s.Every(t.Context())) {
			if s.HasJournal(t.Context(), ref) && api.ValidTaskID(ref.ID) {
				out = append(out, filepath.Base(filepath.Dir(ref.Log))+"/"+filepath.Base(ref.Log))
			}
		}
		slices.Sort(out)
		return out
	}
	b.run(b.root, b.data, api.NewMigration{})
	b.run(b.data, b.back, api.NewMigration{})
	s := b.open(b.root).Store
	storetest.Delete(t, s, "usual")
	fixture.Must[store.Ref](t)(trash.Restore(t.Context(), s, "gone"))
	storetest.Delete(t, s, "imported")
	storetest.Close(t, storetest.Create(t, s, "imported")) // another task
	want := places(b.root)
	for _, way := range [][2]string{{b.root, b.data}, {b.data, b.back}} {
		before := places(way[1])
		_, err := migrate.Run(t.Context(), b.open(way[0]), b.open(way[1]), api.NewMigration{DryRun: true})
		storetest.Check(t, err)
		if d := cmp.Diff(before, places(way[1])); d != "" {
			t.Errorf("a dry run moved a task: -before +after\n%s", d)
		}
		b.run(way[0], way[1], api.NewMigration{})
		if d := cmp.Diff(want, places(way[1])); d != "" {
			t.Errorf("to %s: -want +got\n%s", way[1], d)
		}
		if m := b.run(way[0], way[1], api.NewMigration{}); m.Already != 8 {
			t.Errorf("again: got %+v, want 8 journals there already", m)
		}
	}
}

// A group that deleted tasks itself has an overlay of its own, which stays. That is no failure.
func TestATargetWithAnOverlay(t *testing.T) {
	b := newBench(t)
	b.fill()
	s := b.open(b.data).Store
	storetest.Close(t, storetest.Create(t, s, "theirs"))
	storetest.Delete(t, s, "theirs")
	for _, want := range []api.Migration{{Copied: 6}, {Already: 6}} {
		m, err := migrate.Run(t.Context(), b.open(b.root), b.open(b.data), api.NewMigration{})
		if err != nil || m.Copied != want.Copied || m.Already != want.Already || len(m.Problems) > 0 || len(m.Left) != 1 || m.Left[0].Task != "overlay" {
			t.Errorf("got %+v, %v, want %d copied, %d there already, no problem, and that the overlay stays", m, err, want.Copied, want.Already)
		}
	}
}

// What cannot be copied is named, and the rest is copied.
func TestNamesWhatIsLeftOut(t *testing.T) {
	b := newBench(t)
	b.fill()
	s := b.open(b.root).Store
	path := filepath.Join(b.root, "tasks", "usual", "journal.jsonl")
	data := fixture.Must[[]byte](t)(os.ReadFile(path))
	at := bytes.Index(data, []byte(`"first`))
	if at < 0 {
		at = len(data) / 2
	}
	data[at+1] ^= 1
	storetest.Check(t, os.WriteFile(path, data, 0o600))
	worked := fixture.Must[*store.Owned](t)(s.Own(t.Context(), s.OwnRef("fork"))).Task
	adopted := filepath.Join(b.root, "adopted", "roo", "elsewhere")
	storetest.Check(t, os.MkdirAll(adopted, 0o700))
	storetest.Write(t, adopted, "journal.jsonl", "")
	m, err := migrate.Run(t.Context(), b.open(b.root), b.open(b.data), api.NewMigration{})
	storetest.Close(t, worked)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, p := range append(m.Problems, m.Left...) {
		said[p.Task] = p.Problem
	}
	for id, want := range map[string]string{
		"usual":        "is damaged at byte",
		"fork-of-fork": "is damaged at byte", // it begins with the same bytes
		"fork":         "a process works on it",
		"elsewhere":    "another tool",
	} {
		if !strings.Contains(said[id], want) {
			t.Errorf("%s: got %q, want it to hold %q", id, said[id], want)
		}
	}
	if len(said) != 4 || m.Copied != 4 {
		t.Errorf("copied %d, left out %v; want 4 and four", m.Copied, said)
	}
}

// Only tasks whose journals the source proves go on without a question.
func TestTrustNeedsAProof(t *testing.T) {
	b := newBench(t)
	b.fill()
	s := b.open(b.root).Store
	for _, id := range []string{"usual", "fork"} {
		k := storetest.Own(t, s, id).Task
		storetest.Check(t, k.CommitSynced(t.Context(), task.InputQueued{Input: "input-" + id, Text: "go on"}))
		storetest.Close(t, k)
	}
	path := filepath.Join(b.root, "tasks", "fork", "journal.jsonl")
	data := fixture.Must[[]byte](t)(os.ReadFile(path))
	lines := bytes.SplitAfter(data, []byte("\n"))
	forged := journal.Commit{Seq: uint64(len(lines)), Epoch: 9, At: 1, By: "x", Events: []journal.Event{[]byte(`{"type":"note"}`)}}
	line := fixture.Must[[]byte](t)(journal.EncodeCommit(forged))
	storetest.Check(t, os.WriteFile(path, append(data, line...), 0o600))

	if m := b.run(b.root, b.data, api.NewMigration{Trust: true}); m.Trusted != 1 {
		t.Errorf("%d tasks go on; want one", m.Trusted)
	}
	target := b.open(b.data).Store
	for id, want := range map[string]store.Standing{"usual": store.Ours, "fork": store.Elsewhere} {
		ref := target.OwnRef(id)
		v := fixture.Must[*store.View](t)(target.Read(t.Context(), ref))
		got := fixture.Must[store.Standing](t)(target.Standing(t.Context(), ref, v.State.Begins))
		storetest.Check(t, v.Close())
		if (got == store.Ours) != (want == store.Ours) {
			t.Errorf("%s stands as %q in the database; want %q", id, got, want)
		}
	}
}

// A migration that is killed anywhere leaves whole journals or none, and the next one finishes it.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it kills with signals")
	}
	b := newBench(t)
	b.fill()
	b.run(b.root, b.data, api.NewMigration{})
	want := b.holds(b.data)
	for i, kill := range []string{
		"restore.copied:1", "restore.copied:3", "restore.copied:8", "migrate.restored:7", "content.postgres.committed",
	} {
		t.Run(kill, func(t *testing.T) {
			b := &bench{T: t, dir: b.dir, root: b.root, back: filepath.Join(b.dir, fmt.Sprint("back", i))}
			b.data = pgtest.Shared(t).Database(t)
			storetest.Check(t, database.Migrate(t.Context(), b.data))
			storetest.Check(t, os.RemoveAll(filepath.Join(b.dir, "group.json"))) // a new database is a new group
			for _, way := range [][2]string{{b.root, b.data}, {b.data, b.back}} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				c := exec.CommandContext(ctx, os.Args[0])
				c.Env = append(os.Environ(), failpoint.Env+"="+kill, childFrom+"="+way[0], childTo+"="+way[1], childDir+"="+b.dir)
				out, err := c.CombinedOutput()
				cancel()
				var exit *exec.ExitError
				if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
					t.Fatalf("the child: %v\n%s", err, out)
				}
				for name, sum := range b.holds(way[1]) {
					if want[name] != sum && !strings.Contains(name, "workspace") {
						t.Errorf("after the kill %s holds %q; want %q", name, sum, want[name])
					}
				}
				b.run(way[0], way[1], api.NewMigration{})
				if d := cmp.Diff(want, b.holds(way[1])); d != "" {
					t.Errorf("finished: -want +got\n%s", d)
				}
			}
		})
	}
}
