package catalog

import (
	"cmp"
	"hash/crc64"
	"math/bits"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task/codec"
)

// Source is a storage whose tasks have rows.
type Source struct {
	Name, Tool string
	ByPath     string // the tool that the path alone implies
	Path       string // as the user named it
	Tasks      string // the folder of task folders
	Problem    string // what is wrong with the indexes beside the tasks
	Indexes    uint64 // a digest of those indexes when Problem was found; 0 = unknown
	Seen       int64  // Unix milliseconds: when a list last kept something about it
	Compared   int64  // Unix milliseconds: when a list last compared every file of it; 0 = unknown
}

// Row is a task as lists filter and sort it, and what it was derived from.
type Row struct {
	ID                                     string
	Tool, Status, Workspace, Model, Parent string
	Tags                                   []string
	Access                                 api.Access
	TS, Cost, Tokens, Size                 int64 // Cost in micro-dollars
	Empty, Damaged, Pinned, Priced         bool

	Known      bool   `codec:"-"` // false: only the name is known
	Logged     bool   // it has a journal
	Unfinished bool   // its files do not show whether it runs now
	Digest     uint64 // of the state of its files
	Folders    uint64 // of the state of its folders and journal; 0 = these show too little
	Written    int64  // Unix seconds: when the newest of its files was written
	Files      string // names of those files, joined by \x00
	Item       uint64 // a digest of its entry in an index; 0 = it is in none that counts
	Indexes    uint64 // a digest of the indexes when Item was last compared; 0 = compare it

	// Content is a digest of both histories' bytes, all zero until a list needs it.
	// Sizes is a digest of their lengths.
	Content [16]byte
	Sizes   uint64

	TitleSum uint64 // a digest of the title
	Title    string `codec:"-"` // read on request: reading it costs a list more than all the other members
	Summary  []byte `codec:"-"` // the encoded row, read on request; nil = not read
}

// Change is what a list found out about a source.
type Change struct {
	Source Source
	Put    []*Row   // new or changed, with summary
	Update []*Row   // rows whose Content or Indexes the list computed
	Gone   []string // names of tasks that are gone
	Reset  bool     // remove every row that is not in Put
}

// Packed is a row in the form that a backend keeps: the values that lists filter and sort by, and separately those
// that only one page shows. Each has a checksum: a list must not show the content of a damaged page of a file.
type Packed struct {
	Body []byte
	Sum  int64

	Title, Summary []byte
	PageSum        int64
}

// Pack returns a row in the form that a backend keeps.
func (r *Row) Pack() Packed {
	r.TitleSum = cmp.Or(MixText(0, r.Title), r.TitleSum) // a row whose title was not read keeps the digest
	p := Packed{Title: []byte(r.Title), Summary: r.Summary, PageSum: r.pageSum()}
	p.Body, p.Sum = encode(*r)
	return p
}

// Row unpacks the members of a row that an extent includes; ok is false when it is damaged.
func (p *Packed) Row(extent Extent) (r Row, ok bool) {
	r.Known = true
	if !decode(&r, p.Body, p.Sum) {
		return r, false
	}
	if extent >= Titles {
		if r.Title = string(p.Title); MixText(0, r.Title) != r.TitleSum {
			return r, false
		}
	}
	if extent == Summaries {
		r.Summary = p.Summary
		return r, r.pageSum() == p.PageSum
	}
	return r, true
}

// Page sets the title and the summary of a row, unless they are damaged or belong to another row.
func (p *Packed) Page(r *Row) {
	whole := *r
	whole.Title, whole.Summary = string(p.Title), p.Summary
	if whole.pageSum() == p.PageSum && MixText(0, whole.Title) == r.TitleSum {
		r.Title, r.Summary = whole.Title, whole.Summary
	}
}

func (r *Row) pageSum() int64 {
	return int64(MixText(MixText(r.Digest, r.ID), string(r.Summary)))
}

// Pack returns a source in the form that a backend keeps.
func (s Source) Pack() (body []byte, sum int64) { return encode(s) }

// UnpackSource reads what Pack returned; false when it is damaged.
func UnpackSource(body []byte, sum int64) (s Source, ok bool) {
	ok = decode(&s, body, sum)
	return s, ok
}

// encode encodes a value, and returns its checksum.
func encode(v any) (body []byte, sum int64) {
	w := codec.NewWriter(nil)
	w.Value(v)
	return w.Out, int64(MixText(0, string(w.Out)))
}

// decode reads what encode wrote, and reports whether the checksum matches.
func decode(to any, body []byte, sum int64) bool {
	if int64(MixText(0, string(body))) != sum {
		return false
	}
	u := codec.Reader{In: body}
	u.Value(to)
	return !u.Bad
}

// SourceRows is a source with its rows.
type SourceRows struct {
	Source
	Rows []Row
}

// Extent is how much of each row is read, beside the values that lists sort by.
type Extent int

// Each extent includes the ones before it.
const (
	Bare Extent = iota
	Titles
	Summaries
)

// Mix adds a number to a digest. It is one step of a permutation, so two digests of lists that differ in one number always
// differ; it does not stop an attacker who wants two digests to be equal.
func Mix(digest, n uint64) uint64 {
	return bits.RotateLeft64(digest^n*0x9e3779b97f4a7c15, 29) * 0xbf58476d1ce4e5b9
}

// MixText adds a text.
func MixText(digest uint64, s string) uint64 {
	return crc64.Update(Mix(digest, uint64(len(s))), crc64.MakeTable(crc64.ECMA), []byte(s))
}
