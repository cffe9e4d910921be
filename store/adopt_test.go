package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

func TestAdoptInPlace(t *testing.T) {
	storage, dir := rooStorage(t, "adopt-me")
	pretty := "[\n  " + apiRow(1, "user", "do it") + ",\n  " + apiRow(2, "assistant", "so far") + "\n]\n"
	write(t, dir, roofmt.APIName, pretty)
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root, storage)
	before := rows(view(t, s, "adopt-me").State)
	originals := map[string]string{}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		originals[name] = read(t, dir, name)
	}
	untouched := tree(t, storage)

	o := own(t, s, "adopt-me")
	k := o.Task
	if want := filepath.Join(root, "adopted", k.Ref.Source, "adopt-me"); k.Ref.Log != want {
		t.Errorf("journal in %s, want %s", k.Ref.Log, want)
	}
	if got := rows(k.State()); got != before {
		t.Errorf("adopted %s\nread %s", got, before)
	}
	for _, f := range k.State().Adopted.Files {
		blob, err := k.log.Blob(context.Background(), journal.Hash(f.Blob))
		if err != nil {
			t.Fatal(err)
		}
		data := fixture.Must[[]byte](t)(blob.ReadAll())
		if string(data) != originals[f.Name] {
			t.Errorf("original %s is not byte for byte", f.Name)
		}
		delete(originals, f.Name)
		fixture.NoError(t, blob.Close())
	}
	if len(originals) != 0 {
		t.Errorf("not kept: %v", originals)
	}
	closeTask(t, k)
	if d := cmp.Diff(untouched, onlyFiles(tree(t, storage), untouched)); d != "" {
		t.Error("adoption without a change wrote:", d)
	}

	// A change in one history leaves the other one's bytes.
	k = own(t, s, "adopt-me").Task
	commit(t, k, task.UI, uiRow(5, "more"))
	want := rows(k.State())
	closeTask(t, k)
	if read(t, dir, roofmt.APIName) != pretty {
		t.Error("the untouched history was respelled")
	}
	if got := read(t, dir, roofmt.UIName); got != array(uiRow(1, "do it"), uiRow(2, "done so far"), uiRow(5, "more")) {
		t.Errorf("UI %s", got)
	}
	item := []byte(read(t, dir, roofmt.ItemName))
	if v, ok := esjson.Get(item, "novel"); !ok || string(v) != `{"a":[1,2]}` {
		t.Errorf("unknown member: %s in %s", v, item)
	}
	if ts, _ := esjson.GetInt(item, "ts"); ts != ts0+5 {
		t.Errorf("item not renewed: %s", item)
	}
	if read(t, dir, roofmt.MetadataName) != `{"files_in_context": [ {"path":"a.go","record_state":"active"} ]}` {
		t.Error("the file record was respelled")
	}
	k = own(t, s, "adopt-me").Task
	if got := rows(k.State()); got != want {
		t.Errorf("reopened %s, want %s", got, want)
	}
	commit(t, k, task.API, apiRow(6, "user", "x"))
	closeTask(t, k)
	if got := read(t, dir, roofmt.APIName); got != array(apiRow(1, "user", "do it"), apiRow(2, "assistant", "so far"), apiRow(6, "user", "x")) {
		t.Errorf("API %s", got)
	}
	for path := range tree(t, dir) {
		switch filepath.Base(path) {
		case "adopt-me", roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName:
		default:
			t.Errorf("left in the editor's folder: %s", path)
		}
	}
}

// onlyFiles drops the times of directories, which a lock that came and went moves.
func onlyFiles(got, like map[string]string) map[string]string {
	out := map[string]string{}
	for path, text := range got {
		if strings.HasPrefix(text, "d") && strings.HasPrefix(like[path], "d") {
			text = like[path]
		}
		out[path] = text
	}
	return out
}

func TestForkOfCline(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	dir := filepath.Join(storage, "tasks", "1730047571772")
	write(t, dir, roofmt.UIName, array(uiRow(1, "hi"), uiRow(2, "ho")))
	write(t, dir, roofmt.APIName, array(apiRow(1, "user", "hi")))
	s := open(t, t.TempDir(), storage)
	before := tree(t, storage)
	want := rows(view(t, s, "1730047571772").State)
	o := own(t, s, "1730047571772")
	if o.Forked == "" || !o.Task.Ref.Own || rows(o.Task.State()) != want {
		t.Errorf("fork %q: %s", o.Forked, rows(o.Task.State()))
	}
	commit(t, o.Task, task.UI, uiRow(3, "on"))
	id := o.Task.Ref.ID
	closeTask(t, o.Task)
	if d := cmp.Diff(before, tree(t, storage)); d != "" {
		t.Error(d)
	}
	if n := len(view(t, s, id).State.UI()); n != 3 {
		t.Errorf("fork has %d rows", n)
	}
}

func TestLinksAreNotWrittenThrough(t *testing.T) {
	storage, dir := rooStorage(t, "real-one")
	outside := filepath.Join(t.TempDir(), "outside")
	fixture.NoError(t, os.Rename(dir, outside))
	fixture.NoError(t, os.Symlink(outside, dir))
	s := open(t, t.TempDir(), storage)
	before := tree(t, outside)
	o := own(t, s, "real-one")
	if o.Forked == "" {
		t.Error("a linked folder was continued in place")
	}
	commit(t, o.Task, task.UI, uiRow(9, "x"))
	closeTask(t, o.Task)
	if d := cmp.Diff(before, tree(t, outside)); d != "" {
		t.Error(d)
	}

	// In Roost's own root it is refused.
	fixture.NoError(t, os.MkdirAll(s.TasksDir(), 0o700))
	fixture.NoError(t, os.Symlink(outside, filepath.Join(s.TasksDir(), "own-link")))
	ref := fixture.Must[Ref](t)(s.Find(context.Background(), "own-link"))
	if _, err := s.Own(context.Background(), ref); !errors.Is(err, ErrLinked) {
		t.Errorf("own: %v", err)
	}
	if d := cmp.Diff(before, tree(t, outside)); d != "" {
		t.Error(d)
	}

	// A file that leads out is neither read nor written.
	secret := filepath.Join(t.TempDir(), "secret")
	fixture.NoError(t, os.WriteFile(secret, []byte(array(uiRow(1, "secret"))), 0o600))
	_, dir = rooStorage(t, "inner-link")
	fixture.NoError(t, os.Remove(filepath.Join(dir, roofmt.UIName)))
	fixture.NoError(t, os.Symlink(secret, filepath.Join(dir, roofmt.UIName)))
	s = open(t, t.TempDir(), filepath.Dir(filepath.Dir(dir)))
	linked := fixture.Must[Ref](t)(s.Find(context.Background(), "inner-link"))
	var unread *roofmt.UnreadError
	if _, err := s.Own(context.Background(), linked); !errors.As(err, &unread) || unread.Path != filepath.Join(dir, roofmt.UIName) {
		t.Errorf("a history that leads out was gone on without: %v", err)
	}
	if exists(linked.Log, "journal.jsonl") {
		t.Error("what is refused has a journal")
	}
	if got := string(fixture.Must[[]byte](t)(os.ReadFile(secret))); got != array(uiRow(1, "secret")) {
		t.Errorf("written through: %s", got)
	}
	folder := fixture.Must[*roofmt.Folder](t)(roofmt.Read(context.Background(), dir))
	if _, err := fold.FromBoth(t.Context(), nil, folder).Range(roofmt.UIName, 0, -1); err == nil {
		t.Error("reading a folder follows links out")
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
}

func TestCorpusList(t *testing.T) {
	list := conformance.CorpusFolders(t, roofmt.IsFolder)
	before := tree(t, conformance.Corpus(t))
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root, list...)
	got := fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
	empty := fixture.Must[Listing](t)(s.List(context.Background(), Filter{TaskFilter: api.TaskFilter{Empty: true}}))
	seen := map[string]bool{}
	for _, item := range append(got.Items, empty.Items...) {
		seen[item.Path] = true
	}
	conformance.CorpusTally(t, list, func(t *testing.T, dir string) {
		if !seen[dir] {
			t.Error("not listed")
		}
	})
	if d := cmp.Diff(before, tree(t, conformance.Corpus(t))); d != "" {
		t.Error(d)
	}
	if exists(root, "") {
		t.Error("listing made the root")
	}
}

func TestCorpusDoctor(t *testing.T) {
	list := conformance.CorpusFolders(t, roofmt.IsFolder)
	before := tree(t, conformance.Corpus(t))
	s := open(t, filepath.Join(t.TempDir(), "root"), list...)
	r := fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), s, nil, false))
	if r.Tasks != len(list) {
		t.Errorf("checked %d of %d", r.Tasks, len(list))
	}
	damaged := map[string]bool{}
	for _, f := range r.Damaged {
		damaged[f.Path] = true
	}
	if r.OK+len(damaged) != r.Tasks {
		t.Errorf("%d in order, %d damaged, of %d", r.OK, len(damaged), r.Tasks)
	}
	if d := cmp.Diff(before, tree(t, conformance.Corpus(t))); d != "" {
		t.Error(d)
	}
	conformance.CorpusTally(t, list, func(t *testing.T, dir string) { adoptCopy(t, dir, damaged[dir]) })
}

// adoptCopy continues a copy without changing anything, and looks at its bytes.
func adoptCopy(t *testing.T, from string, damaged bool) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	const id = "copy"
	dir := filepath.Join(storage, "tasks", id)
	fixture.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	before := tree(t, dir)
	s := open(t, t.TempDir(), storage)
	want := rows(view(t, s, id).State)
	ref := fixture.Must[Ref](t)(s.Find(context.Background(), id))
	o, err := s.Own(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	same := rows(o.Task.State()) == want
	if err := o.Task.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if after := view(t, s, id); rows(after.State) != want || !same {
		t.Fatal("another state after adoption")
	}
	if d := cmp.Diff(before, onlyFiles(tree(t, dir), before)); d != "" && !damaged {
		t.Error(d)
	}
}

// A task of 2024 goes on in place: its rows lie under the old name, which stays
// as it is, and from then on under the new one.
func TestAdoptTheOldName(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	dir := filepath.Join(storage, "tasks", "1728239012345")
	old := "[" + strings.Join(fourRows, ", ") + "]\n"
	write(t, dir, roofmt.LegacyName, old)
	write(t, dir, roofmt.APIName, array(threeAPI...))
	s := open(t, t.TempDir(), storage)
	k := own(t, s, "1728239012345").Task
	commit(t, k, task.UI, uiRow(9, "on"))
	want := rows(k.State())
	closeTask(t, k)
	if got := read(t, dir, roofmt.UIName); got != with(fourRows, uiRow(9, "on")) {
		t.Errorf("rows %s", got)
	}
	if read(t, dir, roofmt.LegacyName) != old {
		t.Error("the old file changed")
	}
	o := own(t, s, "1728239012345")
	if len(o.Task.Intakes()) != 0 || rows(o.Task.State()) != want {
		t.Errorf("got %+v, want len(o.Task.Intakes()) = 0 and rows(o.Task.State()) = %v", o.Task.Intakes(), want)
	}
	closeTask(t, o.Task)
	// Without the new file, the old one is no news.
	fixture.NoError(t, os.Remove(filepath.Join(dir, roofmt.UIName)))
	o = own(t, s, "1728239012345")
	if len(o.Task.Intakes()) != 0 || rows(o.Task.State()) != want {
		t.Errorf("got %+v, want len(o.Task.Intakes()) = 0 and rows(o.Task.State()) = %v", o.Task.Intakes(), want)
	}
	closeTask(t, o.Task)
	if got := read(t, dir, roofmt.UIName); got != with(fourRows, uiRow(9, "on")) {
		t.Errorf("not put back: %s", got)
	}
}

// What could not be read is named in the adoption, and what could be goes on.
func TestAdoptWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		ui, api int
		created int64
	}{
		"rows cut":              {map[string]string{roofmt.UIName: array(fourRows...)[:150]}, 2, 2, ts0 + 1},
		"turns gone":            {map[string]string{roofmt.APIName: ""}, 2, 0, ts0 + 1},
		"both in leftovers":     {map[string]string{roofmt.UIName: "", roofmt.APIName: "", ".ui_messages.json.bak_2_a.tmp": array(fourRows...), ".api_conversation_history.json.bak_1_a.tmp": array(threeAPI...)}, 4, 3, ts0 + 1},
		"no times":              {map[string]string{roofmt.UIName: `[{"type":"say","say":"text"}]`, roofmt.APIName: `[{"role":"user","content":"x"}]`}, 1, 1, ts0 + 2},
		"nothing that is whole": {map[string]string{roofmt.UIName: "\x00\x00", roofmt.APIName: "{"}, 0, 0, ts0 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			storage, dir := rooStorage(t, "left")
			for file, text := range c.files {
				write(t, dir, file, text)
			}
			s := open(t, t.TempDir(), storage)
			read := rows(view(t, s, "left").State)
			k := own(t, s, "left").Task
			st := k.State()
			if len(st.UI()) != c.ui || len(st.API()) != c.api || st.CreatedAt != c.created || rows(st) != read {
				t.Errorf("%d rows, %d turns, created %d", len(st.UI()), len(st.API()), st.CreatedAt)
			}
			commit(t, k, task.UI, uiRow(9, "on"))
			closeTask(t, k)
			f := fixture.Must[*roofmt.Folder](t)(roofmt.Read(context.Background(), dir))
			if f.UI.Len() != c.ui+1 || f.UI.State != roofmt.Present {
				t.Errorf("projected %v, %d rows", f.UI.State, f.UI.Len())
			}
			fixture.NoError(t, f.Close())
		})
	}
}
