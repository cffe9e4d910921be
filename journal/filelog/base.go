package filelog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
)

// A log may begin with another one, its base: a fork shares the commits that its base held when the fork began. The
// folder base holds further names of the base's files (or copies, where a file system allows one name a file).
// base.json holds how much of them counts, because the base's owner appends to the same file. A reader or owner of
// the fork sees one log; its own commits are numbered after those of the base.
//
// Storing the path of the base's folder was rejected: deleting or moving the base would cost the fork its history.
// Copying the log was rejected: its cost grows with the log.
const (
	baseDir  = "base"
	baseName = "base.json"
)

// ErrBase: the base with which the log begins cannot be read.
var ErrBase = errors.New("the base of this journal cannot be read")

// Begin makes dir a journal that begins with the one in from, up to its commit seq. dir must exist and hold no
// journal. The journal is durable when Begin returns; a kill before that leaves a folder that is no journal yet.
func Begin(ctx context.Context, dir, from string, seq uint64) error {
	r, err := OpenReader(from)
	if err != nil {
		return err
	}
	defer r.Close()
	b := journal.Base{Seq: seq}
	for c, err := range r.ReadBackward(ctx, seq+1) {
		if err != nil {
			return fmt.Errorf("read commit %d of %s: %w", seq, from, err)
		}
		if c.Seq == seq {
			b.Epoch = c.Epoch
		}
		break
	}
	if b.Epoch == 0 {
		return fmt.Errorf("journal %s has no commit %d", from, seq)
	}
	to := filepath.Join(dir, baseDir)
	if err := share(ctx, from, to); err != nil {
		return fmt.Errorf("share journal %s: %w", from, err)
	}
	return nameBase(dir, b)
}

// nameBase makes dir, which holds the files of its base, a journal that begins with them.
func nameBase(dir string, b journal.Base) error {
	data, err := json.Marshal(b)
	return errors.Join(err, atomicfile.Create(filepath.Join(dir, baseDir, baseName), data), atomicfile.SyncDir(dir))
}

// share gives the files of a journal, and those of its base, a second name.
func share(ctx context.Context, from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{logName, idxName, baseName} {
		err := oneMore(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && name != logName) {
			return err
		}
	}
	if err := shareBlobs(ctx, filepath.Join(from, blobsDir), filepath.Join(to, blobsDir)); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(from, baseDir, logName)); err == nil {
		return share(ctx, filepath.Join(from, baseDir), filepath.Join(to, baseDir))
	}
	return nil
}

func shareBlobs(ctx context.Context, from, to string) error {
	groups, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, g := range groups {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !g.IsDir() || len(g.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(from, g.Name()))
		if err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(to, g.Name()), 0o700); err != nil {
			return err
		}
		for _, f := range files {
			if !journal.Hash(f.Name()).Valid() || !f.Type().IsRegular() {
				continue
			}
			if err := oneMore(filepath.Join(from, g.Name(), f.Name()), filepath.Join(to, g.Name(), f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneMore gives a file a second name, or copies it where the file system refuses that.
func oneMore(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", from)
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to, math.MaxInt64)
}

// copyFile copies a file, at most n bytes of it, to a new one.
func copyFile(from, to string, n int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, n))
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// Shared reports whether the log in dir may be the base of a fork, because its file has further names.
func Shared(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, logName))
	return err == nil && names(info) != 1
}

// Separate gives a fork whose base is the log in dir a log of its own, up to what counts. It serves a caller that
// removes dir: what its owner appended after the fork began must go with it. It does not shorten the file itself, which
// would also shorten a backup that is a further name of it.
func Separate(ctx context.Context, dir, fork string) error {
	log, err := os.Lstat(filepath.Join(dir, logName))
	if err != nil {
		return nil // there is nothing to separate from
	}
	for ; ; fork = filepath.Join(fork, baseDir) { // the base of a fork may be a fork
		base := filepath.Join(fork, baseDir, logName)
		info, err := os.Lstat(base)
		if err != nil {
			return nil
		}
		if !os.SameFile(log, info) {
			continue
		}
		n, err := counted(ctx, fork)
		temp := base + ".tmp"
		if err == nil {
			_ = os.Remove(temp) // a killed process left it
			err = copyFile(base, temp, n)
		}
		if err == nil {
			_ = os.Remove(filepath.Join(fork, baseDir, idxName)) // it names what follows
			err = atomicfile.Move(temp, base)
		}
		if err != nil {
			return fmt.Errorf("separate %s from %s: %w", fork, dir, err)
		}
	}
}

// OpenReader opens the journal in dir for reading. It never writes or creates
// anything. Without journal.jsonl in dir the error is journal.ErrNotFound.
func OpenReader(dir string) (journal.Stored, error) { return OpenKnowing(dir, nil, 0) }

// OpenKnowing is OpenReader for a journal whose commits are verified: the reader is a journal.Prover, and returns no
// snapshot that this root did not write. A nil seal verifies nothing. known is a commit that a witness outside the
// journal shows to be synced: if the log ends before it, the commits between are lost.
func OpenKnowing(dir string, s *journal.Seal, known uint64) (journal.Stored, error) {
	base, at, err := openBase(dir)
	if err != nil {
		return nil, err
	}
	r, err := openReader(OS, dir, at.Own(known))
	if err != nil {
		if base != nil {
			err = errors.Join(err, base.Close())
		}
		return nil, err
	}
	r.verify(s)
	if base == nil {
		return r, nil
	}
	return &joined{Stored: r, base: base, at: at, verified: s != nil}, nil
}

// Own takes over the journal in dir for writing, and creates missing files. Errors: *journal.BusyError while another
// process holds it, journal.ErrUntrustedLocks where locks cannot be trusted, journal.ErrNotSaved with its cause when
// the disk refuses.
func Own(ctx context.Context, dir string, opt Options) (journal.Owner, error) {
	base, at, err := openBase(dir)
	if err != nil {
		return nil, err
	}
	// The fork's own part is numbered from 1, but callers know one log with one numbering.
	if ask := opt.Meets; ask != nil {
		opt.Meets = func(head uint64) error { return ask(at.Seq + head) }
	}
	if tell := opt.Synced; tell != nil {
		opt.Synced = func(epoch, head uint64, last bool) { tell(at.Epoch+epoch, at.Seq+head, last) }
	}
	opt.Known = at.Own(opt.Known)
	o, err := own(ctx, dir, opt)
	switch {
	case err != nil && base != nil:
		return nil, errors.Join(err, base.Close())
	case err != nil:
		return nil, err
	case base == nil:
		return o, nil
	}
	return &joinedOwner{joined: joined{Stored: o, base: base, at: at, verified: opt.Seal != nil}, writer: o}, nil
}

// openBase opens the base of a log; nil when the log has none.
func openBase(dir string) (journal.Stored, journal.Base, error) {
	var at journal.Base
	data, err := inputfile.Read(filepath.Join(dir, baseDir, baseName)) // not os.ReadFile: in an imported folder it may be a pipe
	if errors.Is(err, fs.ErrNotExist) {
		return nil, at, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err == nil && (at.Seq == 0 || at.Epoch == 0) {
		err = errors.New("it does not name the commit before the log's first one")
	}
	if err == nil {
		_, err = os.Lstat(filepath.Join(dir, baseDir, logName))
	}
	var base journal.Stored
	if err == nil {
		base, err = OpenKnowing(filepath.Join(dir, baseDir), nil, at.Seq) // which may begin with another one itself
	}
	if err != nil {
		return nil, at, fmt.Errorf("journal %s: %w: %w", dir, ErrBase, err)
	}
	return base, at, nil
}

// Counts is how many bytes of a file in a journal's folder count at most: of the log of a base, those that the fork shares.
func Counts(ctx context.Context, dir, name string) int64 {
	if fork, ok := strings.CutSuffix(filepath.ToSlash(name), baseDir+"/"+logName); ok {
		if n, err := counted(ctx, filepath.Join(dir, fork)); err == nil && n > 0 {
			return n
		}
	}
	return math.MaxInt64
}

// counted is how many bytes of the log in dir/base count; 0 when that is not known. It is the file of the base, whose owner
// may have appended more.
func counted(ctx context.Context, dir string) (n int64, err error) {
	base, at, err := openBase(dir)
	if base == nil {
		return 0, err
	}
	defer base.Close()
	last, part := at.Seq, base
	if j, ok := base.(*joined); ok {
		last, part = j.at.Own(last), j.Stored
	}
	var c cursor
	err = part.(*reader).walk(ctx, &c.off, &c.order, math.MaxInt64, func(it item) bool {
		if it.seq == last {
			n = it.raw.off + it.raw.length
		}
		return it.seq < last
	})
	return n, err
}

// joined is a log that begins with another one.
type joined struct {
	journal.Stored // the log's own part
	base           journal.Stored
	at             journal.Base
	verified       bool
}

// Proof implements journal.Prover. The commits of the base belong to another log: they count as not signed.
func (j *joined) Proof(ctx context.Context) (journal.Proof, error) {
	p, err := j.Stored.(journal.Prover).Proof(ctx)
	for _, n := range []*uint64{&p.Unsigned, &p.Unknown, &p.Altered} {
		if *n > 0 {
			*n += j.at.Seq
		}
	}
	if j.verified {
		p.Unsigned = max(p.Unsigned, j.at.Seq)
	}
	return p, err
}

func (j *joined) own(c journal.Commit) journal.Commit {
	c.Seq += j.at.Seq
	c.Epoch += j.at.Epoch
	return c
}

// shifted yields the commits of the own part, with their numbers in the whole log.
func (j *joined) shifted(list iter.Seq2[journal.Commit, error]) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		for c, err := range list {
			if err == nil {
				c = j.own(c)
			}
			if !yield(c, j.lost(err)) {
				return
			}
		}
	}
}

// lost returns an error of the own part, with the numbers of the whole log.
func (j *joined) lost(err error) error {
	if lost, ok := errors.AsType[*journal.DamageError](err); ok && lost.Seq != 0 {
		d := *lost
		d.Seq += j.at.Seq
		return &d
	}
	return err
}

// shared yields the commits of the base from a number on, up to the last one that counts.
func (j *joined) shared(ctx context.Context, from uint64, yield func(journal.Commit, error) bool) bool {
	for c, err := range j.base.Read(ctx, from) {
		var lost *journal.DamageError
		if err == nil && c.Seq > j.at.Seq || errors.As(err, &lost) && lost.Seq > j.at.Seq {
			return true
		}
		if !yield(c, err) {
			return false
		}
	}
	return true
}

// Head implements journal.Reader.
func (j *joined) Head(ctx context.Context) (uint64, error) {
	head, err := j.Stored.Head(ctx)
	return head + j.at.Seq, err
}

// Read implements journal.Reader.
func (j *joined) Read(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return j.both(ctx, from, j.Stored.Read)
}

// Follow implements journal.Reader.
func (j *joined) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return j.both(ctx, from, j.Stored.Follow)
}

func (j *joined) both(ctx context.Context, from uint64, own func(context.Context, uint64) iter.Seq2[journal.Commit,
	error]) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		if from <= j.at.Seq && !j.shared(ctx, from, yield) {
			return
		}
		j.shifted(own(ctx, j.at.Own(from)))(yield)
	}
}

// Bases implements journal.Stored. A fork that shares no own commit of another fork has that fork's base twice: it
// counts once.
func (j *joined) Bases() []journal.Base { return slices.Compact(append(j.base.Bases(), j.at)) }

// Lines implements journal.Stored.
func (j *joined) Lines(ctx context.Context, from uint64) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		if from <= j.at.Seq {
			for l, err := range j.base.Lines(ctx, from) {
				var lost *journal.DamageError
				if err == nil && l.Seq > j.at.Seq || errors.As(err, &lost) && lost.Seq > j.at.Seq {
					break
				}
				if !yield(l, err) {
					return
				}
			}
		}
		for l, err := range j.Stored.Lines(ctx, j.at.Own(from)) {
			l.Seq += j.at.Seq
			if !yield(l, j.lost(err)) {
				return
			}
		}
	}
}

// ReadBackward implements journal.Reader.
func (j *joined) ReadBackward(ctx context.Context, before uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		if before == 0 || before > j.at.Seq+1 {
			own := before
			if own != 0 {
				own -= j.at.Seq
			}
			for c, err := range j.shifted(j.Stored.ReadBackward(ctx, own)) {
				if !yield(c, err) {
					return
				}
			}
			before = j.at.Seq + 1
		}
		j.base.ReadBackward(ctx, before)(yield)
	}
}

// Blob implements journal.Reader.
func (j *joined) Blob(ctx context.Context, h journal.Hash) (journal.Blob, error) {
	b, err := j.Stored.Blob(ctx, h)
	if errors.Is(err, journal.ErrBlobMissing) {
		return j.base.Blob(ctx, h)
	}
	return b, err
}

// Snapshot implements journal.Reader.
func (j *joined) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	s, err := j.Stored.Snapshot(ctx)
	if err == nil {
		s.Seq += j.at.Seq
		return s, nil
	}
	if s, err := j.base.Snapshot(ctx); err == nil && s.Seq <= j.at.Seq && !j.verified {
		return s, nil
	}
	return journal.Snapshot{}, err
}

// Health implements journal.Reader: it returns the health of the own part, with the damage of those commits of the
// base that count.
func (j *joined) Health(ctx context.Context) (journal.Health, error) {
	h, err := j.Stored.Health(ctx)
	if err != nil {
		return h, err
	}
	below, err := j.base.Health(ctx)
	if err != nil {
		return h, fmt.Errorf("%w: %w", ErrBase, err)
	}
	for i := range h.Damaged {
		h.Damaged[i].Seq += j.at.Seq
	}
	for i := range h.SetAside {
		h.SetAside[i].Seq += j.at.Seq
	}
	lost := api.Some(below.Damaged, func(d journal.Damage) (journal.Damage, bool) { return d, d.Seq <= j.at.Seq })
	h.Damaged = append(lost, h.Damaged...)
	h.Head, h.Epoch, h.Commits = h.Head+j.at.Seq, h.Epoch+j.at.Epoch, h.Commits+j.at.Seq
	h.DamagedBlobs = append(h.DamagedBlobs, below.DamagedBlobs...)
	j.shared(ctx, 1, func(c journal.Commit, _ error) bool { // the base's later commits do not count
		h.MissingBlobs = append(h.MissingBlobs, c.Blobs...)
		return true
	})
	slices.Sort(h.MissingBlobs)
	h.MissingBlobs = slices.DeleteFunc(slices.Compact(h.MissingBlobs), func(hash journal.Hash) bool {
		b, err := j.Blob(ctx, hash)
		if err == nil {
			err = b.Close()
		}
		return !errors.Is(err, journal.ErrBlobMissing)
	})
	return h, ctx.Err()
}

// Close implements journal.Reader.
func (j *joined) Close() error { return errors.Join(j.Stored.Close(), j.base.Close()) }

// joinedOwner owns the own part of a log that begins with a base. It reads the whole log.
type joinedOwner struct {
	joined
	writer
}

// writer is the part of journal.Owner beyond journal.Reader.
type writer interface {
	Epoch() uint64
	Append(ctx context.Context, d journal.Draft) (uint64, error)
	Barrier(ctx context.Context) error
	PutBlob(ctx context.Context, data []byte) (journal.Hash, error)
	PutBlobFrom(ctx context.Context, r io.Reader) (journal.Hash, int64, error)
	SaveSnapshot(ctx context.Context, s journal.Snapshot) error
	Unsaved() error
}

// Epoch implements journal.Owner.
func (o *joinedOwner) Epoch() uint64 { return o.writer.Epoch() + o.at.Epoch }

// Append implements journal.Owner.
func (o *joinedOwner) Append(ctx context.Context, d journal.Draft) (uint64, error) {
	seq, err := o.writer.Append(ctx, d)
	if err != nil {
		return 0, err
	}
	return seq + o.at.Seq, nil
}

// SaveSnapshot implements journal.Owner.
func (o *joinedOwner) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if s.Seq <= o.at.Seq {
		return nil // the base has one
	}
	s.Seq -= o.at.Seq
	return o.writer.SaveSnapshot(ctx, s)
}

var (
	_ journal.Prover = (*reader)(nil)
	_ journal.Prover = (*owner)(nil)
	_ journal.Prover = (*joinedOwner)(nil)
	_ journal.Stored = (*joined)(nil)
	_ journal.Owner  = (*joinedOwner)(nil)
)
