package api

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/money"
)

// AddClamped adds amounts that are not negative. A sum that overflows is the largest int64.
func AddClamped(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Add adds a part of the same request to a usage. An unknown cost stays unknown.
func (u *Usage) Add(more Usage) {
	u.TokensIn, u.TokensOut = AddClamped(u.TokensIn, more.TokensIn), AddClamped(u.TokensOut, more.TokensOut)
	u.CacheReads, u.CacheWrites = AddClamped(u.CacheReads, more.CacheReads), AddClamped(u.CacheWrites, more.CacheWrites)
	if u.Cost != nil && more.Cost != nil {
		sum := money.USD(AddClamped(int64(*u.Cost), int64(*more.Cost)))
		u.Cost = &sum
	}
}

// Micros returns the cost in micro-dollars; 0 when it is unknown.
func (u Usage) Micros() int64 {
	if u.Cost == nil {
		return 0
	}
	return int64(*u.Cost)
}

// Tokens returns all tokens, each once: those of a cache are among TokensIn.
func (u Usage) Tokens() int64 { return AddClamped(u.TokensIn, u.TokensOut) }

// Filled makes absent lists empty ones: JSON shows [] and not null.
func (t Summary) Filled() Summary {
	for _, list := range []*[]string{&t.Copies, &t.ChildIDs, &t.Tags, &t.Inferred} {
		if *list == nil {
			*list = []string{}
		}
	}
	if t.Damaged == nil {
		t.Damaged = []Damage{}
	}
	return t
}

// OwnSource is the source of the tasks in Roost's own root.
const OwnSource = "roost"

// Statuses are those that a task can have.
var Statuses = []string{"queued", "running", "waiting", "delegated", "restoring", "interrupted", "completed", "failed", "cancelled", "idle"}

// Summary is a task as lists and APIs show it. Its JSON is the contract's.
type Summary struct {
	ID            string        `json:"id"`
	Source        string        `json:"source"`
	Tool          string        `json:"tool"`
	Origin        string        `json:"origin"`
	Root          string        `json:"root"`
	Path          string        `json:"path"`
	Copies        []string      `json:"copies"`
	Number        int           `json:"number"`
	Title         string        `json:"title"`
	Status        string        `json:"status"`
	CreatedAt     *string       `json:"created_at"` // RFC 3339, UTC, milliseconds
	UpdatedAt     *string       `json:"updated_at"`
	TS            int64         `json:"ts"` // Roo's: Unix milliseconds
	Workspace     string        `json:"workspace"`
	Mode          string        `json:"mode"`
	Provider      string        `json:"provider"`
	Model         string        `json:"model"`
	ParentID      string        `json:"parent_id"`
	RootID        string        `json:"root_id"`
	ChildIDs      []string      `json:"child_ids"`
	Tags          []string      `json:"tags"`
	Pinned        bool          `json:"pinned"`
	Messages      MessageCounts `json:"messages"`
	Usage         Usage         `json:"usage"`
	ContextTokens int64         `json:"context_tokens"`
	ContextWindow int64         `json:"context_window,omitempty"` // tokens of the model's window; only in the task's own document
	Size          int64         `json:"size"`                     // bytes on disk
	Damaged       []Damage      `json:"damaged"`
	OpenQuestions int           `json:"open_questions"`
	WaitingUntil  *string       `json:"waiting_until"`
	Inferred      []string      `json:"inferred"`
	Pending       bool          `json:"foreign_pending,omitempty"` // another program changed it; not taken in yet
	Received      *Received     `json:"received,omitempty"`        // it came from elsewhere
	Access        Access        `json:"access,omitzero"`           // where there are accounts
	Empty         bool          `json:"empty,omitempty"`
	Unreached     string        `json:"unreached,omitempty" codec:"-"` // why no server continues it; only in its own document
	Gone          bool          `json:"-"`                             // the task was moved or removed during the search for it
}

// Key names a task among those of all sources: SOURCE:ID.
func (t Summary) Key() string { return t.Source + ":" + t.ID }

// ContextShare returns the percentage of the model's window that is used; ok is false when that is not known.
func (t Summary) ContextShare() (percent int64, ok bool) {
	return ShareOf(t.ContextTokens, t.ContextWindow)
}

// ShareOf returns the percentage of a model's window that some tokens use; ok is false when one of the two is not
// known.
func ShareOf(tokens, window int64) (percent int64, ok bool) {
	if tokens <= 0 || window <= 0 {
		return 0, false
	}
	return int64(min(float64(tokens)*100/float64(window), 999)), true // as integers, a wrong number would overflow
}

// MessageCounts are the lengths of the visible histories.
type MessageCounts struct {
	UI  int `json:"ui"`
	API int `json:"api"`
}

// Usage is everything that was ever spent.
type Usage struct {
	TokensIn    int64      `json:"tokens_in"`
	TokensOut   int64      `json:"tokens_out"`
	CacheWrites int64      `json:"cache_writes"`
	CacheReads  int64      `json:"cache_reads"`
	Cost        *money.USD `json:"cost"` // decimal string, null = unknown
}

// Damage is a part of a task that could not be read.
type Damage struct {
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost,omitempty"`
}

// Text describes the damage and its consequence.
func (d Damage) Text() string {
	text := d.File + ": " + d.Problem
	if d.Recovered != "" {
		text += "; recovered: " + d.Recovered
	}
	if d.Lost != "" {
		text += "; lost: " + d.Lost
	}
	return text
}

// Received is the origin of a task that came from elsewhere, and those parts of it that do not count here.
type Received struct {
	From       string   `json:"from"` // import, unsigned, elsewhere, altered
	At         *string  `json:"at"`
	Approve    string   `json:"approve,omitempty"`
	Allow      []string `json:"allow,omitempty"`
	AllowTools []string `json:"allow_tools,omitempty"`
	BaseURL    string   `json:"base_url,omitempty"`
	Queue      int      `json:"queue,omitempty"`     // messages that waited, and that Roost does not send
	Questions  int      `json:"questions,omitempty"` // that were open
	Answers    int      `json:"answers,omitempty"`   // that were recorded and not used
	Notes      []string `json:"notes,omitempty"`     // the same in words
}

// Plus adds two usages. The cost is unknown only when it is unknown in both: an unknown price does not hide a known
// one.
func (u Usage) Plus(other Usage) Usage {
	if u.Cost == nil {
		u.Cost, other.Cost = other.Cost, nil
	}
	u.Add(other)
	return u
}

// Less returns a usage minus another one.
func (u Usage) Less(other Usage) Usage {
	out := Usage{
		TokensIn: u.TokensIn - other.TokensIn, TokensOut: u.TokensOut - other.TokensOut,
		CacheWrites: u.CacheWrites - other.CacheWrites, CacheReads: u.CacheReads - other.CacheReads,
	}
	if cost := money.USD(u.Micros() - other.Micros()); cost != 0 {
		out.Cost = &cost
	}
	return out
}

// NonZero reports whether anything was spent.
func (u Usage) NonZero() bool {
	return u.TokensIn != 0 || u.TokensOut != 0 || u.CacheWrites != 0 || u.CacheReads != 0 || u.Micros() != 0
}

// Share returns the i-th of n equal parts. The first parts take the remainders, so that the parts add up.
func (u Usage) Share(i, n int) Usage {
	part := func(whole int64) int64 {
		if whole < 0 { // a file that takes costs back; there is no even way
			if i > 0 {
				return 0
			}
			return whole
		}
		p := whole / int64(n)
		if int64(i) < whole%int64(n) {
			p++
		}
		return p
	}
	out := Usage{
		TokensIn: part(u.TokensIn), TokensOut: part(u.TokensOut),
		CacheWrites: part(u.CacheWrites), CacheReads: part(u.CacheReads),
	}
	if u.Cost != nil {
		cost := money.USD(part(int64(*u.Cost)))
		out.Cost = &cost
	}
	return out
}

// Efforts are the values of the setting for how much a model thinks.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// What the model gets of a file that it knows and that another program or the user changed.
const (
	StaleTell = "tell" // a notice of the change, with the difference if it is small
	StaleRead = "read" // its new content
)

// ValidTaskID reports whether id may name a task folder that Roost opens by its id. Lists show folders with other
// names, and an import gives them a new id.
//
// The form is ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$, without a regular expression: a list checks every folder.
func ValidTaskID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// DeletedTask is a deleted task as lists show it.
type DeletedTask struct {
	Summary
	Name      string  `json:"name"`       // the name that restores it
	DeletedAt *string `json:"deleted_at"` // RFC 3339; null when unknown
	Hidden    bool    `json:"hidden"`     // its folder is untouched in the storage of another tool
}

// QualifiedName returns a name of the deleted task that matches no other task.
func (t DeletedTask) QualifiedName() string {
	if t.Hidden {
		return t.Name
	}
	return OwnSource + ":" + t.Name
}

// Grouping is the property by which spending is grouped.
type Grouping string

// The properties by which spending can be grouped.
const (
	ByDay       Grouping = "day"       // when the request was sent, in the caller's time zone
	ByWeek      Grouping = "week"      // the same: 2026-W05, weeks begin on Monday
	ByMonth     Grouping = "month"     // the same: 2026-01
	ByModel     Grouping = "model"     // provider/model
	ByWorkspace Grouping = "workspace" // the task's folder
	ByTask      Grouping = "task"
	ByTool      Grouping = "tool" // the tools that the reply called; several calls of one reply share the cost of its request
)

// OverTime reports whether the groups are periods of time. Their keys are in the order of time.
func (g Grouping) OverTime() bool { return g == ByDay || g == ByWeek || g == ByMonth }

// KeyAt returns the key of the period that contains a moment, for groups over time.
func (g Grouping) KeyAt(at time.Time) string {
	switch g {
	case ByWeek:
		year, week := at.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	case ByMonth:
		return at.Format("2006-01")
	}
	return at.Format(time.DateOnly)
}

// EarliestTime is the first moment that a task can be from, in Unix milliseconds: the year 2000. An earlier time is a
// mistake, and is shown as an unknown one.
const EarliestTime = 946_684_800_000

// Groupings are all values of Grouping.
var Groupings = []Grouping{ByDay, ByWeek, ByMonth, ByModel, ByWorkspace, ByTask, ByTool}

// Totals are what was spent, in groups that add up to the total: a subtask counts
// once, with itself.
type Totals struct {
	By    Grouping        `json:"by"`
	Items []SpendingGroup `json:"items"`
	Total SpendingGroup   `json:"total"`
}

// SpendingGroup is the spending of one group.
type SpendingGroup struct {
	Key      string `json:"key"`             // a day, provider/model, folder, task id or tool; "" = not known
	Title    string `json:"title,omitempty"` // of a task
	Source   string `json:"source,omitempty"`
	ParentID string `json:"parent_id,omitempty"`
	Tasks    int    `json:"tasks"`    // that spent something in this group
	Requests int    `json:"requests"` // a request that called two tools counts for both
	Unpriced int    `json:"unpriced"` // requests whose price is unknown
	Usage    Usage  `json:"usage"`

	// WithChildren is a task's own usage and that of all its descendants. These
	// overlap and do not add up to the total.
	WithChildren *Usage `json:"with_children,omitempty"`
}

// What to do with a task whose id belongs to a task with other content.
const (
	ConflictSkip = "skip" // leave the task out; the report names it
	ConflictFork = "fork" // import it under an id that follows from its content
)

// The outcomes of a task of an import.
const (
	TaskImported = "imported" // under its own id, or under a new one if its folder's name cannot be an id
	TaskForked   = "forked"   // under a new id, because other content has its own id
	TaskSame     = "same"     // the root already had the same content
	TaskConflict = "conflict" // other content has its id; left out
	TaskEmpty    = "empty"    // it has no byte of a message; left out
	TaskFailed   = "failed"   // see Problem; nothing of it is in the root
)

// Import is what an import did or, for a dry run, would do.
type Import struct {
	DryRun    bool           `json:"dry_run"`
	Tasks     int            `json:"tasks"`
	Imported  int            `json:"imported"`
	Forked    int            `json:"forked"`
	Same      int            `json:"same"`
	Conflicts int            `json:"conflicts"`
	Empty     int            `json:"empty"`
	Failed    int            `json:"failed"`
	Files     int            `json:"files"`
	Bytes     int64          `json:"bytes"`
	Items     []ImportedTask `json:"items"`

	Unreachable []SourceState `json:"unreachable"`       // sources that the request named and that could not be read
	Problem     *Problem      `json:"problem,omitempty"` // why the tasks after the last item were not imported
}

// NewImport names what is copied into the root, and how. Paths are those of the server's machine.
type NewImport struct {
	Paths   []string    `json:"paths,omitempty"`          // task folders, storages and archives; absolute
	Sources []string    `json:"sources,omitempty"`        // names of sources or tools, or all
	DryRun  bool        `json:"dry_run,omitempty"`        // compare only; nothing is created
	Clash   string      `json:"on_conflict,omitempty"`    // a task whose id has other content: skip (the default) or fork
	Map     [][2]string `json:"map,omitempty"`            // workspaces below the first folder are below the second one here
	Trust   bool        `json:"trust_settings,omitempty"` // keep the policy, address and limits that tasks of Roost come with
}

// ImportedTask is one task of an import. ByteEqual: every file of the copy was read back and equals the original byte
// for byte, except for those in Differs.
type ImportedTask struct {
	ID        string     `json:"id"` // in Roost's own root; "" when the task is not there
	Name      string     `json:"name"`
	From      string     `json:"from"`
	Path      string     `json:"path"`
	Outcome   string     `json:"outcome"`
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"` // of the list of the original's files and their digests
	ByteEqual bool       `json:"byte_equal"`
	Differs   []FileNote `json:"differs"`
	LeftOut   []FileNote `json:"left_out"`
	Notes     []string   `json:"notes"`
	Problem   string     `json:"problem"`
}

// FileNote is a remark about a file.
type FileNote struct {
	File string `json:"file"`
	What string `json:"what"`
}

// Checkup is what a check of tasks found and repaired.
type Checkup struct {
	Tasks    int       `json:"tasks"`
	OK       int       `json:"ok"`
	Damaged  []Finding `json:"damaged"`
	Repaired []Finding `json:"repaired"` // repaired, removed or rebuilt; the other lists hold the rest

	// Findings that mean no loss: derived data that is missing or out of date, and leftovers of interrupted work.
	Stale     []Finding `json:"stale"`
	Leftovers []Finding `json:"leftovers"`

	// Tasks with open work or settings of their own whose journals are not proven to be this root's own: they do not
	// continue by themselves.
	Untrusted []Finding `json:"untrusted"`

	// The number of contents of checkpoints that were read and compared, and their bytes.
	Contents     int   `json:"contents"`
	ContentBytes int64 `json:"content_bytes"`
}

// NewCheckup names what is checked, and what may change. The zero value checks everything and changes nothing.
type NewCheckup struct {
	Tasks   []string `json:"tasks,omitempty"`   // only these
	Repair  bool     `json:"repair,omitempty"`  // repair what can be repaired, and keep the replaced bytes
	Rebuild bool     `json:"rebuild,omitempty"` // make derived data again where it is missing, out of date or wrong
	Folder  string   `json:"folder,omitempty"`  // a folder in which exports may have left unfinished files; absolute
}

// Finding is one problem of a task or, without an ID, of what is kept for all tasks.
type Finding struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost"`
	Copy      string `json:"copy,omitempty"` // the copy of the bytes that a repair replaced
	Kind      string `json:"kind,omitempty"` // FindingUnpaired; "" = any other
}

// FindingUnpaired is the kind of a finding about a whole file in which tool calls lack their results, or results
// their calls.
const FindingUnpaired = "unpaired_calls"

// TrustedRoot is a root that its user declared their own or, after a dry run, would declare.
type TrustedRoot struct {
	Root  string        `json:"root"`
	Keys  int           `json:"keys"` // the number of keys that count here from now on
	Tasks []TrustedTask `json:"tasks"`
}

// TrustedTask is a task that may continue since its root is trusted, and what it holds.
type TrustedTask struct {
	ID       string   `json:"id"`
	Source   string   `json:"source"`
	Standing string   `json:"standing"`
	Holds    []string `json:"holds"`
	Problem  string   `json:"problem,omitempty"` // why the task could not be trusted
}

// Server describes a running server.
type Server struct {
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"`
	URL       string `json:"url"` // "" = it is reached by a socket only
	Version   string `json:"version"`
	Draining  bool   `json:"draining"` // no new runs are started
	Stopping  bool   `json:"stopping"` // it ends when its runs have ended
	Recovery  string `json:"recovery"` // the recovery of an earlier process's runs: none, going_on, done, failed
	Runs      Load   `json:"runs"`
	Streams   int    `json:"streams"` // the open streams
	Limits    Bounds `json:"limits"`
	LAN       *LAN   `json:"lan,omitempty"` // absent: only this machine reaches it

	Notifications *Notifications `json:"notifications,omitempty"` // absent: no setting asks for notifications
	Group         []GroupServer  `json:"group,omitempty"`         // the servers that share its database, itself among them
}

// GroupServer is what a server announces to those that share its database.
type GroupServer struct {
	ID      string         `json:"id"` // the same after a restart
	URL     string         `json:"url"`
	Host    string         `json:"host,omitempty"`
	Folders []SharedFolder `json:"folders"`

	// ClonesFrom holds beginnings of addresses of git remotes. From such a remote, the server clones workspaces that
	// no server has.
	ClonesFrom []string `json:"clones_from,omitempty"`
}

// SharedFolder is a folder that several servers reach, maybe at different paths.
type SharedFolder struct {
	Name string `json:"name"`
	Path string `json:"path"` // on this server
	Mark string `json:"mark"` // the content of a file in it: a folder with another mark is another folder
}

// FolderID identifies a workspace among servers that share a database: an equal path is no proof that a folder is the
// same.
type FolderID struct {
	Shared string `json:"shared,omitempty"` // the name of the shared folder that holds it; "" = none does
	Mark   string `json:"mark,omitempty"`   // the mark of that folder
	Below  string `json:"below,omitempty"`  // the path in that folder, with slashes
	Server string `json:"server,omitempty"` // the id of the server that worked in it
	Inode  string `json:"inode,omitempty"`  // identifies the folder while the machine of that server runs

	// Store names the store of the task's checkpoints if the workspace is a clone: the store of the workspace that it
	// was made for.
	Store string    `json:"store,omitempty"`
	Tree  *WorkTree `json:"tree,omitempty"` // what another server needs to clone it, as of the last run's start; nil = nothing is recorded
}

// WorkTree is a git work tree as a run found it: a commit that the remote has, and the checkpoint that holds the
// files that differed.
type WorkTree struct {
	Problem    string `json:"problem,omitempty"` // why it cannot be cloned; nothing else is set then
	Remote     string `json:"remote,omitempty"`  // its address
	Commit     string `json:"commit,omitempty"`
	Branch     string `json:"branch,omitempty"`     // "" = none was checked out
	Below      string `json:"below,omitempty"`      // the workspace in the work tree, with slashes; "" = its top
	Store      string `json:"store,omitempty"`      // of the task's checkpoints in that workspace
	Checkpoint int    `json:"checkpoint,omitempty"` // 0 = nothing differed
}

// Notifications counts how often the user's command or webhook was called, for questions that wait and runs that end.
type Notifications struct {
	Sent      int    `json:"sent"`
	Failed    int    `json:"failed"`
	Problem   string `json:"problem,omitempty"` // of the newest failure
	ProblemAt string `json:"problem_at,omitempty"`
}

// LAN describes how other devices of the local network reach a server, by TLS with a certificate of its own.
type LAN struct {
	URL         string `json:"url"`
	CA          string `json:"ca_url"`      // the address of the certificate that devices install to trust the server's
	Fingerprint string `json:"fingerprint"` // of that certificate: its SHA-256, as pairs of hexadecimal digits with colons
}

// Device is a browser that is logged in.
type Device struct {
	ID        string `json:"id"`
	Name      string `json:"name"`    // the browser and the system at first
	Address   string `json:"address"` // from which it last sent a request
	FirstSeen string `json:"first_seen"`
	LastSeen  string `json:"last_seen"`
	Until     string `json:"until"`     // the end of its log-in
	Connected bool   `json:"connected"` // one of its requests is open, such as the event stream of a page
	Current   bool   `json:"current"`   // it sent this request
}

// DevicePatch changes a device.
type DevicePatch struct {
	Name string `json:"name"`
}

// Load counts the runs of a process.
type Load struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"` // waiting for a person
	Queued  int `json:"queued"`
}

// Bounds limit how much a server does at a time.
type Bounds struct {
	MaxRuns      int    `json:"max_runs"`
	MaxStreams   int    `json:"max_streams"`
	MaxBody      int64  `json:"max_body"` // bytes of one request
	Hold         string `json:"hold"`     // how long a run waits for a user before it releases its task; 0s = until there is an answer
	DrainTimeout string `json:"drain_timeout"`
}

// Login is a link that logs a browser in, once.
type Login struct {
	URL string `json:"login_url"`
	LAN string `json:"lan_login_url,omitempty"` // the same link, for other devices of the local network
}

// Stop asks a server to end.
type Stop struct {
	Now bool `json:"now,omitempty"` // interrupt and save the runs, instead of finishing them
}

// Version identifies this program.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"build_date"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// stamp is what tools/release sets when it links a release: VERSION COMMIT TIME, followed by "modified" when the tree
// held changes beyond the commit.
var stamp string

// ProgramVersion returns the version of this program: that of the stamp, else that of the build information, which
// `go install` fills, else "dev".
func ProgramVersion() Version {
	info, _ := debug.ReadBuildInfo()
	return versionOf(stamp, info)
}

func versionOf(stamp string, info *debug.BuildInfo) Version {
	v := Version{Version: "dev", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if words := strings.Fields(stamp); len(words) >= 3 {
		v.Version, v.Commit, v.Date, v.Modified = words[0], words[1], words[2], slices.Contains(words[3:], "modified")
		return v
	}
	if info == nil {
		return v
	}
	if number := strings.TrimPrefix(info.Main.Version, "v"); number != "" && number != "(devel)" {
		v.Version = number
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// NewMigration asks for a copy of all tasks of one store in another.
type NewMigration struct {
	DryRun bool // compare only
	Trust  bool // let tasks continue whose journals are the source's own
}

// Migration is the report of copying all tasks of one store into another, or of a dry run.
type Migration struct {
	From   string `json:"from"`
	To     string `json:"to"`
	DryRun bool   `json:"dry_run,omitempty"`

	Copied   int    `json:"copied"`   // journals of tasks that were copied, the trash and the labels included
	Extended int    `json:"extended"` // journals that were there and lacked commits
	Already  int    `json:"already"`  // journals that had every commit
	Commits  uint64 `json:"commits"`  // written
	Contents int    `json:"contents"` // of checkpoints, written
	Drafts   int    `json:"drafts"`
	Trusted  int    `json:"trusted"` // tasks that may continue without a confirmation

	Problems []MigrationProblem `json:"problems"` // what was not copied
	Left     []MigrationProblem `json:"left"`     // what such a copy always leaves out
}

// MigrationProblem is something that was not copied, and why.
type MigrationProblem struct {
	Task    string `json:"task"` // its id; "" = it belongs to no single task
	Problem string `json:"problem"`
}
