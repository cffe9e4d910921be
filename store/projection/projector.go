package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Projections take at most one part in projectShare of the time, and never come
// closer than projectPause.
const (
	projectShare = 10
	projectPause = time.Second
)

// snapshotEvery is after how many commits a running task's snapshot is renewed:
// it bounds what a reader folds, and what a kill leaves to be folded.
const snapshotEvery = 256

// Task is an owned task whose files a Projector writes.
type Task struct {
	ID           string
	Dir          string // its folder
	LogDir       string // the folder of its journal
	Own          bool   // it is in Roost's own root
	Log          journal.Owner
	Now          func() int64
	View         func(func(*task.State))                         // calls back with the state while no commit can change it
	SaveSnapshot func(ctx context.Context, commits uint64) error // if there are at least so many new commits
}

var (
	// ErrBusy: another program is writing the task's files just now.
	ErrBusy = errors.New("another program is writing this task")

	// ErrLinked: the task folder leads out of its storage. Roost reads it and does not write it.
	ErrLinked = errors.New("it leads out of the storage and is not written")
)

// Projector keeps Roo's files behind the journal. It runs behind, coalesced, and
// is awaited only when a run ends, waits or hands over. What it cannot write it
// writes later; the journal lacks nothing meanwhile.
type Projector struct {
	// Replace writes files. A test sets one that fails, before the first write.
	Replace func(context.Context, string, []roofmt.Replacement, roofmt.Options) error

	task  Task
	waken chan struct{}
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex // one projection at a time
	mark    Watermark
	shown   uint64 // the commit that the files show
	off     bool   // the folder is not ours to write now
	known   bool   // how the files stand was seen, or they were written, in this ownership
	listed  bool   // Roo's index may hold an entry older than our history_item.json
	trouble error  // why the last projection failed
	base    []byte // history_item.json as it stands in the folder: its unknown members stay
	meta    []byte // task_metadata.json as it stands in the folder; nil when there is none
}

// NewProjector starts to keep a task's files behind its journal. Close or Stop ends that.
func NewProjector(t Task) *Projector {
	p := &Projector{
		task: t, waken: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
		mark: Read(t.LogDir), Replace: roofmt.Replace,
	}
	go p.loop()
	return p
}

// Wake makes the projector write the newest state soon.
func (p *Projector) Wake() {
	select {
	case p.waken <- struct{}{}:
	default:
	}
}

func (p *Projector) loop() {
	defer close(p.done)
	pause := projectPause
	for {
		select {
		case <-p.stop:
			return
		case <-p.waken:
		}
		select {
		case <-p.stop:
			return
		case <-time.After(pause):
		}
		begun := time.Now()
		p.Settle(context.Background())                           //nolint:errcheck // kept in trouble, and tried again by the next wake and by close
		p.task.SaveSnapshot(context.Background(), snapshotEvery) //nolint:errcheck // derived; the next one may do
		pause = max(projectPause, projectShare*time.Since(begun))
	}
}

// Stop ends the loop and writes nothing.
func (p *Projector) Stop() {
	close(p.stop)
	<-p.done
}

// Leave makes the projector write nothing any more: the folder is not ours to write.
func (p *Projector) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
}

// Distrust makes the projector write a file again that is not what it wrote.
func (p *Projector) Distrust(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark := p.mark.Files[name]
	mark.SHA256, mark.Shows = "damaged", ""
	p.mark.Files[name] = mark
	p.shown = 0
}

// Close ends the loop and writes the newest state. Where that stands already, another
// program may have written since.
func (p *Projector) Close(ctx context.Context) error {
	p.Stop()
	err := p.Settle(context.WithoutCancel(ctx))
	for pause := passingPause; passing(err) && pause <= passingMost; pause *= 2 {
		time.Sleep(pause)
		err = p.Settle(context.WithoutCancel(ctx))
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	err = p.unlist(context.WithoutCancel(ctx))
	p.mu.Unlock()
	return errors.Join(err, p.stands())
}

// unlist, called with mu held, lets Roo read history_item.json anew after we wrote it. While Roo holds the lock
// of its index, the next write and the end of the ownership try again.
func (p *Projector) unlist(ctx context.Context) error {
	if !p.listed || p.task.Own {
		return nil
	}
	done, err := Unlist(ctx, p.task.Dir, p.task.ID, p.task.Now())
	p.listed = !done
	if err != nil {
		return fmt.Errorf("task %s: take its old entry out of %s: %w", p.task.ID, roofmt.IndexName, err)
	}
	return nil
}

// Trouble of the disk may pass in a moment, and nobody comes back to a task whose run has
// ended: the last projection is tried again for about a second and a half. After that the
// next owner writes it, or the next server (see Store.Behind).
const (
	passingPause = 50 * time.Millisecond
	passingMost  = 800 * time.Millisecond
)

func passing(err error) bool {
	for _, e := range []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// stands reports roofmt.ErrChanged when a history is not as it was written or seen last.
func (p *Projector) stands() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := p.task
	prints, err := roofmt.Prints(ref.Dir)
	if p.off || !p.known || err != nil {
		return nil //nolint:nilerr // an editor deleted it; the journal is whole
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		if prints[name] != *p.expected(name) && prints[name].Exists {
			return fmt.Errorf("task %s: %s: %w", ref.ID, name, roofmt.ErrChanged)
		}
	}
	return nil
}

// Settle writes the files for the newest synced state, if they show an older one.
func (p *Projector) Settle(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return nil
	}
	var img image
	var err error
	p.task.View(func(s *task.State) {
		if s.Seq != p.shown {
			img, err = imageOf(s, p.task.Now())
		}
	})
	if err != nil {
		p.trouble = fmt.Errorf("task %s: write its files: %w", p.task.ID, err)
		return p.trouble
	}
	if img.seq == 0 {
		return nil
	}
	// A projection never shows what is not durable: the image comes first, so that
	// nothing gets into it behind the barrier.
	if err := p.task.Log.Barrier(ctx); err != nil {
		return err
	}
	p.trouble = p.write(ctx, img)
	if p.trouble == nil {
		p.shown = img.seq
	}
	return p.trouble
}

// write replaces the files that changed, all under Roo's locks, and records what
// was written.
func (p *Projector) write(ctx context.Context, img image) error {
	ref := p.task
	if !ref.Own {
		if _, err := os.Stat(ref.Dir); errors.Is(err, os.ErrNotExist) {
			p.off = true // the editor deleted it; the journal is whole
			return nil
		}
	}
	if len(p.base) > 0 && len(img.item) > 0 {
		img.item = p.base
	}
	ui, uiMark, err := render(img.ui)
	if err != nil {
		return err
	}
	api, apiMark, err := render(img.api)
	if err != nil {
		return err
	}
	metadata, err := p.metadata(ctx, img)
	if err != nil {
		return err
	}
	item := img.renderItem(int64(len(ui) + len(api) + len(metadata)))
	files := []struct {
		name  string
		bytes []byte
		mark  File
	}{
		{roofmt.UIName, ui, uiMark},
		{roofmt.APIName, api, apiMark},
		{roofmt.MetadataName, metadata, FileOf(metadata)},
		{roofmt.ItemName, item, FileOf(item)},
	}

	prints := map[string]*roofmt.Fingerprint{}
	var list []roofmt.Replacement
	p.mark.Writing = map[string]File{}
	for _, f := range files {
		last, known := p.mark.Files[f.name]
		if f.name == roofmt.ItemName {
			f.mark.Shows = img.itemKey()
		}
		key := cmp.Or(f.mark.Shows, f.mark.SHA256)
		if known && (last.Shows == key || last.Shows == "" && last.SHA256 == key) && exists(filepath.Join(ref.Dir, f.name)) != last.Absent {
			continue
		}
		if f.name == roofmt.MetadataName && len(img.files)+len(img.unknown) == 0 && !ref.Own {
			continue // we know nothing of files: leave the editor's record alone
		}
		r := roofmt.Replacement{Name: f.name, Bytes: f.bytes, Done: &roofmt.Fingerprint{}}
		r.Expect = p.expected(f.name)
		prints[f.name] = r.Done
		p.mark.Writing[f.name] = f.mark
		list = append(list, r)
	}
	if len(list) > 0 {
		if err := p.mark.Save(ref.LogDir); err != nil {
			return err
		}
		err = p.Replace(ctx, ref.Dir, list, roofmt.Options{Create: ref.Own})
		for name, mark := range p.mark.Writing {
			if print := prints[name]; print.Exists { // of some files only, when it failed
				p.known = true
				mark.MTime, mark.Inode = print.MTime, print.Inode
				p.mark.Files[name] = mark
				switch name {
				case roofmt.MetadataName:
					p.meta = metadata
				case roofmt.ItemName:
					p.listed = true
				}
			}
		}
		if errors.Is(err, roofmt.ErrLocked) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		if err != nil {
			return fmt.Errorf("task %s: write its files: %w", ref.ID, err)
		}
	}
	failpoint.Hit("project.written")
	if err := p.unlist(ctx); err != nil { // before the record: after a kill in between the next owner writes the item again
		return err
	}
	p.mark.Writing, p.mark.Seq = nil, img.seq
	if err := p.mark.Save(ref.LogDir); err != nil {
		return err
	}
	p.removeOutputs(img)
	return p.writeOutputs(img.outputs)
}

// removeOutputs takes files away, as Roo does, whose calls were rewound. Their bytes are
// blobs, and undo writes them again. One of another size is not ours; what cannot be
// removed does no harm.
func (p *Projector) removeOutputs(img image) {
	dir := filepath.Join(p.task.Dir, "command-output")
	if len(img.gone) == 0 || linked(dir) {
		return
	}
	for _, a := range img.gone {
		if slices.ContainsFunc(img.outputs, func(o artifact) bool { return o.name == a.name }) {
			continue
		}
		name := filepath.Join(dir, filepath.Base(a.name))
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == a.size {
			_ = os.Remove(name)
		}
	}
}

// metadata is the file record with what the editor wrote into it. A file that is
// gone is made again from the original that the adoption kept.
func (p *Projector) metadata(ctx context.Context, img image) ([]byte, error) {
	base := p.meta
	if base == nil && img.meta != "" {
		blob, err := p.task.Log.Blob(ctx, journal.Hash(img.meta))
		if err == nil {
			base, err = blob.ReadAll()
			err = errors.Join(err, blob.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("task %s: the original %s: %w", p.task.ID, roofmt.MetadataName, err)
		}
	}
	return img.metadata(base), nil
}

// expected is how a file must stand to be replaced: as we left it, or
// as the intake saw it. A file that neither knows must not be there.
func (p *Projector) expected(name string) *roofmt.Fingerprint {
	if last, ok := p.mark.Files[name]; ok && last.MTime != 0 {
		print := last.Print()
		return &print
	}
	return &roofmt.Fingerprint{} // it must not exist
}

// writeOutputs puts full command outputs where Roo keeps them, each whole or not
// at all, and never through a link.
func (p *Projector) writeOutputs(list []artifact) error {
	dir := filepath.Join(p.task.Dir, "command-output")
	for _, a := range list {
		name := filepath.Base(a.name)
		if exists(filepath.Join(dir, name)) {
			continue
		}
		if err := p.writeOutput(dir, name, a.blob); err != nil {
			return fmt.Errorf("task %s: output %s: %w", p.task.ID, a.name, err)
		}
	}
	return nil
}

func (p *Projector) writeOutput(dir, name, hash string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if linked(dir) {
		return ErrLinked
	}
	blob, err := p.task.Log.Blob(context.Background(), journal.Hash(hash))
	if err != nil {
		return err
	}
	data, err := blob.ReadAll()
	if err = errors.Join(err, blob.Close()); err != nil {
		return err
	}
	return roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: name, Bytes: data}}, roofmt.Options{})
}
