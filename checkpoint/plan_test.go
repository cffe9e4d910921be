package checkpoint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// ver is a version in a letter: "" nothing, "a" a kept file, "a*" one that is executable,
// "a?" one whose content was not kept, "@a" a link, "!" what is no file.
func ver(s string) api.FileVersion {
	switch {
	case s == "":
		return api.FileVersion{Kind: api.KindGone}
	case s == "!":
		return api.FileVersion{Kind: api.KindOther}
	}
	v := api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: 10}
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		s, v = rest, api.FileVersion{Kind: api.KindLink, Size: 10}
	}
	if rest, ok := strings.CutSuffix(s, "*"); ok {
		s, v.Mode = rest, 0o755
	}
	rest, unkept := strings.CutSuffix(s, "?")
	v.Hash, v.Blob = strings.Repeat(rest, 64), strings.Repeat(rest, 40)
	if unkept {
		v.Blob = ""
	}
	return v
}

// story is a list of checkpoints: "reason path=was>now path=now".
func story(lines ...string) []task.CheckpointSaved {
	var out []task.CheckpointSaved
	for i, l := range lines {
		words := strings.Fields(l)
		c := task.CheckpointSaved{Number: i + 1, Reason: words[0], Message: uint64(10 * (i + 1))}
		for _, w := range words[1:] {
			path, what, _ := strings.Cut(w, "=")
			f := task.CheckpointFile{Path: path}
			if was, now, ok := strings.Cut(what, ">"); ok {
				v := ver(was)
				f.Was, what = &v, now
			}
			f.Now = ver(what)
			c.Files = append(c.Files, f)
		}
		out = append(out, c)
	}
	return out
}

func files(words string) map[string]api.FileVersion {
	out := map[string]api.FileVersion{}
	for _, w := range strings.Fields(words) {
		path, what, _ := strings.Cut(w, "=")
		out[path] = ver(what)
	}
	return out
}

func TestStateAt(t *testing.T) {
	list := story(
		"before a=a",         // 1: the agent is about to write a
		"turn a=b",           // 2: it did
		"command n=>x m=y>z", // 3: a command made n and changed m
		"before a=c l=@k",    // 4: somebody else changed a meanwhile
		"turn a=d l=",        // 5
		"turn u=q",           // 6: how u was is not known
	)
	for number, want := range map[int]string{
		0:  "a=a n= m=y l=@k",
		1:  "a=a n= m=y l=@k",
		2:  "a=b n= m=y l=@k",
		3:  "a=b n=x m=z l=@k",
		4:  "a=c n=x m=z l=@k",
		5:  "a=d n=x m=z l=",
		6:  "a=d n=x m=z l= u=q",
		99: "a=d n=x m=z l= u=q",
	} {
		if d := cmp.Diff(files(want), StateAt(list, number)); d != "" {
			t.Errorf("at %d: %s", number, d)
		}
	}
	// What a file was before a change that nobody saw coming stays unknown, whatever is
	// known of later times.
	unknown := story("turn u=a", "command u=a>b", "before u=c")
	for number, want := range map[int]string{0: "", 1: "u=a", 2: "u=b", 3: "u=c"} {
		if d := cmp.Diff(files(want), StateAt(unknown, number)); d != "" {
			t.Errorf("at %d, unknown before: %s", number, d)
		}
	}
	if d := cmp.Diff([]string{"a", "l"}, Tracked(list, []string{"l/", "a", "un"})); d != "" {
		t.Error(d)
	}
	if got := Tracked(list, []string{"."}); fmt.Sprint(got) != "[a l m n u]" {
		t.Error(got)
	}
	if got := Tracked(story("turn d/a=x d/b/c=x dd=x"), []string{"d"}); fmt.Sprint(got) != "[d/a d/b/c]" {
		t.Error(got)
	}
}

func TestWhoChangedAFile(t *testing.T) {
	list := story("before a=a", "turn a=b", "turn z=z", "before a=c", "turn a=d", "command a=e>f", "safety a=f", "restored a=f>a", "manual a=g", "turn u=h")
	var got []string
	for _, s := range Transitions(list)["a"] {
		who := "own"
		if s.Others {
			who = "others"
		}
		got = append(got, fmt.Sprintf("c%d %.1s>%.1s %s", s.Checkpoint, s.From.Hash, s.To.Hash, who))
	}
	want := []string{"c2 a>b own", "c4 b>c others", "c5 c>d own", "c6 d>e others", "c6 e>f own", "c8 f>a own", "c9 a>g others"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Transitions(list)["u"]; len(got) != 0 {
		t.Errorf("of a change whose start is not known: %+v", got)
	}
}

func TestWhatARestoreWouldDo(t *testing.T) {
	edit := story("before a=a", "turn a=b")
	others := story("before a=a", "turn a=b", "before a=c", "turn a=d")
	for name, c := range map[string]struct {
		list  []task.CheckpointSaved
		to    int
		now   string
		rule  Rule
		paths []string
		want  string // "path act change"
	}{
		"an edit":                          {list: edit, to: 1, now: "a=b", want: "a restore changed"},
		"it is so already":                 {list: edit, to: 1, now: "a=a"},
		"to the newest":                    {list: edit, to: 2, now: "a=b"},
		"a creation goes":                  {list: story("before a=", "turn a=b"), to: 0, now: "a=b", want: "a restore deleted"},
		"a deletion comes back":            {list: story("command a=a>"), to: 0, now: "a=", want: "a restore added"},
		"a deletion came back by others":   {list: story("command a=a>"), to: 0, now: "a=x", want: "a keep  conflict"},
		"only the mode":                    {list: story("command a=a>a*"), to: 0, now: "a=a*", want: "a restore mode"},
		"only the mode, content not kept":  {list: story("command a=a?>a*"), to: 0, now: "a=a*", want: "a restore mode"},
		"a link becomes a file":            {list: story("command a=@a>b"), to: 0, now: "a=b", want: "a restore changed"},
		"not looked at":                    {list: edit, to: 1, now: ""},
		"only the mode, never read":        {list: story("command a=?>?*"), to: 0, now: "a=?*", rule: Overwrite, want: "a lost  conflict"},
		"another kind, content not kept":   {list: story("command a=@a?>a"), to: 0, now: "a=a", want: "a lost "},
		"not kept":                         {list: story("command a=a?>b"), to: 0, now: "a=b", want: "a lost "},
		"others since, kept":               {list: edit, to: 1, now: "a=x", rule: Keep, want: "a keep  conflict"},
		"others since, merged":             {list: edit, to: 1, now: "a=x", rule: Merge, want: "a merge changed conflict 1"},
		"others since, overwritten":        {list: edit, to: 1, now: "a=x", rule: Overwrite, want: "a overwrite changed conflict"},
		"others deleted it, overwritten":   {list: edit, to: 1, now: "a=", rule: Overwrite, want: "a overwrite added conflict"},
		"others, content lost":             {list: story("command a=a?>b"), to: 0, now: "a=x", rule: Overwrite, want: "a lost  conflict"},
		"others in between":                {list: others, to: 1, now: "a=d", rule: Keep, want: "a keep  conflict"},
		"others in between, merged":        {list: others, to: 1, now: "a=d", rule: Merge, want: "a merge changed conflict 2"},
		"in doubt":                         {list: story("before a=a", "turn a=b", "doubt a=c"), to: 1, now: "a=c", want: "a keep  conflict doubt"},
		"in doubt, overwritten":            {list: story("doubt a=a>b"), to: 0, now: "a=b", rule: Overwrite, want: "a overwrite changed conflict doubt"},
		"in doubt, and others since":       {list: story("doubt a=a>b"), to: 0, now: "a=c", want: "a keep  conflict"},
		"in doubt, and others before":      {list: story("before a=a", "turn a=b", "others a=x", "doubt a=c"), to: 1, now: "a=c", want: "a keep  conflict"},
		"others before it":                 {list: others, to: 3, now: "a=d", want: "a restore changed"},
		"others brought it back":           {list: others, to: 1, now: "a=a"},
		"a restore of ours in between":     {list: story("before a=a", "turn a=b", "safety", "restored a=b>a", "before", "turn a=c"), to: 2, now: "a=c", want: "a restore changed"},
		"only what is asked for":           {list: story("command a=a>b d/x=a>b d/y=a>b"), to: 0, now: "a=b d/x=b d/y=b", paths: []string{"d"}, want: "d/x restore changed, d/y restore changed"},
		"a folder became a link":           {list: story("command d=>@e d/x=a>!"), to: 0, now: "d=@e d/x=!", want: "d restore deleted, d/x restore added"},
		"a folder became a link, gone":     {list: story("command d=>@e d/x=a>"), to: 0, now: "d=@e d/x=!", want: "d restore deleted, d/x restore added"},
		"others put a link above, gone":    {list: story("command d/x=a>"), to: 0, now: "d/x=!", want: "d/x keep  conflict"},
		"a link became a folder":           {list: story("command d=@e> d/x=!>a"), to: 0, now: "d= d/x=a", want: "d restore added, d/x restore deleted"},
		"others put a link above it":       {list: story("command d/x=a>b"), to: 0, now: "d/x=!", rule: Overwrite, want: "d/x keep  conflict"},
		"others put a link there, merge":   {list: story("command d/x=a>b"), to: 0, now: "d/x=!", rule: Merge, want: "d/x keep  conflict"},
		"it was a socket, and went":        {list: story("command a=!>b"), to: 0, now: "a="},
		"a socket where nothing was":       {list: story("command a=>b"), to: 0, now: "a=!"},
		"it was a socket":                  {list: story("command a=!>b"), to: 0, now: "a=b", want: "a lost "},
		"paths of git and out of the tree": {list: story("command .git/hooks/x=>b ../y=>b /z=>b a/.GIT/x=>b a/../b=>b"), to: 0, now: ".git/hooks/x=b ../y=b /z=b a/.GIT/x=b a/../b=b", want: "../y keep , .git/hooks/x keep , /z keep , a/../b keep , a/.GIT/x keep "},
	} {
		if c.rule == "" {
			c.rule = Keep
		}
		p := PlanMoment(c.list, Moment{Number: c.to}, files(c.now), c.paths, c.rule)
		var got []string
		for _, i := range p.Items {
			one := fmt.Sprintf("%s %s %s", i.Path, i.Act, i.Change())
			if i.Conflict {
				one += " conflict"
			}
			if i.Doubt {
				one += " doubt"
			}
			if i.Act == ActMerge {
				one += fmt.Sprint(" ", len(i.Undo))
			}
			if !i.Act.Changes() && i.Why == "" {
				t.Errorf("%s: nobody says why %s is not changed", name, i.Path)
			}
			got = append(got, one)
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

func TestAPlanInNumbers(t *testing.T) {
	list := story("command a=a>b b=>b c=c> d=a>a* e=a?>b f=a>b")
	p := PlanMoment(list, Moment{}, files("a=b b=b c= d=a* e=b f=x"), nil, Keep)
	if d := cmp.Diff(counts{Added: 1, Changed: 2, Deleted: 1, Conflicts: 1, Kept: 1, Lost: 1, Bytes: 20}, countsOf(p)); d != "" {
		t.Error(d)
	}
	if got := fmt.Sprint(p.Paths(), p.Bytes()); got != "[a b c d] 20" {
		t.Error(got)
	}
}

// kept are the items that a plan leaves as they are.
func kept(p Plan) []Item {
	return api.Some(p.Items, func(i Item) (Item, bool) { return i, !i.Act.Changes() })
}

// What the safety checkpoint could not hold, or what changed while it was taken, is not
// touched.
func TestThePlanGoesByWhatIsHeld(t *testing.T) {
	list := story("command a=a>b b=a>b c=a>b d=a>a*")
	p := PlanMoment(list, Moment{}, files("a=b b=b c=b d=a*"), nil, Keep)
	held := files("a=b b=x c=b? d=a?*")
	v := ver("a?")
	v.Mode = 0o755
	held["d"] = v
	got := p.Files(held)
	left := kept(p)
	if len(got) != 2 || got[0].Path != "a" || !got[0].To.Same(ver("a")) || got[0].From.Blob == "" || got[1].Path != "d" || got[0].How != task.HowRestore {
		t.Errorf(`got %+v, want len(got) = 2 and got[0].Path = "a" and got[0].To.Same(ver("a")) and got[0].From.Blob != "" and got[1].Path = "d" and got[0].How = task.HowRestore`,
			got)
	}
	if len(left) != 2 || left[0].Path != "b" || left[1].Path != "c" || left[0].Why == left[1].Why || left[0].Act != ActKeep {
		t.Errorf(`got %+v, want len(left) = 2 and left[0].Path = "b" and left[1].Path = "c" and left[0].Why != left[1].Why and left[0].Act = ActKeep`,
			left)
	}
}

// A file that cannot be read is no change by others, and no change during the restore.
func TestThePlanKeepsWhatCannotBeRead(t *testing.T) {
	unread := map[string]api.FileVersion{"a": {Kind: api.KindFile, Size: 10}}
	for rule, want := range map[Rule]string{
		Keep: "it cannot be read", Overwrite: "its present content cannot be kept, and would be lost",
	} {
		p := PlanMoment(story("command a=a>b"), Moment{}, unread, nil, rule)
		got := p.Files(unread)
		if left := kept(p); len(got) != 0 || len(left) != 1 || left[0].Why != want {
			t.Errorf("%s: changes %v, keeps %+v, want nothing to change and %q", rule, got, left, want)
		}
	}
}

// A file below a path where a link is now counts as gone. A restore that removes the link brings the file back.
func TestThePlanGoesBehindALink(t *testing.T) {
	p := PlanMoment(story("command d=>@e d/x=a>!"), Moment{}, files("d=@e d/x=!"), nil, Keep)
	got := p.Files(files("d=@e"))
	if left := kept(p); len(left) != 0 || len(got) != 2 || got[1].Path != "d/x" || !got[1].From.Same(ver("")) || !got[1].To.Same(ver("a")) {
		t.Errorf("%+v, left %+v", got, left)
	}
	// What is there and nobody holds is left as it is.
	got = p.Files(files("d/x=!"))
	if left := kept(p); len(left) != 1 || left[0].Path != "d" || len(got) != 1 {
		t.Errorf("%+v, left %+v", got, left)
	}
}

// Within a reply some files have their state of one checkpoint, and some that of another.
func TestWhatARestoreToAMomentWouldDo(t *testing.T) {
	list := story("before a=a b=a c=a", "turn a=b", "turn b=b c=b", "turn a=c c=c")
	for name, c := range map[string]struct {
		moment Moment
		to     int
		want   string
	}{
		"none of its own":       {Moment{Number: 3}, 3, "a>b c>b"},
		"one before the others": {Moment{Number: 3, Of: map[string]int{"a": 1}}, 1, "a>a c>b"},
		"one behind the others": {Moment{Number: 2, Of: map[string]int{"b": 3, "c": 4}}, 2, "a>b"},
		"one before all":        {Moment{Number: 4, Of: map[string]int{"b": 0}}, 0, "b>a"},
		"one that nobody knows": {Moment{Number: 3, Of: map[string]int{"x": 3}}, 3, "a>b c>b"},
	} {
		p := PlanMoment(list, c.moment, files("a=c b=b c=c"), nil, Keep)
		var got []string
		for _, i := range p.Items {
			got = append(got, fmt.Sprintf("%s>%.1s", i.Path, i.Target.Hash))
			if i.Act != ActRestore || i.Conflict {
				t.Errorf("%s: got %+v, want i.Act = ActRestore and not i.Conflict", name, i)
			}
		}
		if to := c.moment.First(); strings.Join(got, " ") != c.want || to != c.to {
			t.Errorf("%s: to %d %v, not %d %s", name, to, got, c.to, c.want)
		}
	}
}

// counts sum a plan up.
type counts struct {
	Added, Changed, Deleted int
	Conflicts               int   // of which those that are kept
	Kept                    int   // are
	Lost                    int   // files whose content is missing
	Bytes                   int64 // that are written
}

// counts sums the plan up. A mode that changes is a change.
func countsOf(p Plan) counts {
	var c counts
	for _, i := range p.Items {
		if i.Conflict {
			c.Conflicts++
		}
		switch i.Act {
		case ActKeep:
			c.Kept++
		case ActLost:
			c.Lost++
		}
		switch i.Change() {
		case api.FileAdded:
			c.Added++
			c.Bytes += i.Target.Size
		case api.FileChanged:
			c.Changed++
			c.Bytes += i.Target.Size
		case api.FileMode:
			c.Changed++
		case api.FileDeleted:
			c.Deleted++
		}
	}
	return c
}

// A command changed a file that is too large to be kept. Nothing shows whether others changed it since.
func TestAFileThatIsTooLargeToBeCompared(t *testing.T) {
	large := api.FileVersion{Kind: api.KindFile, Mode: 0o644, Size: 3_000_000}
	list := []task.CheckpointSaved{{Number: 1, Reason: task.ReasonCommand, Files: []task.CheckpointFile{{Path: "large", Was: &large, Now: large}}}}
	now := large
	now.Hash = strings.Repeat("a", 64)
	for number := range 2 {
		p := PlanMoment(list, Moment{Number: number}, map[string]api.FileVersion{"large": now}, nil, Keep)
		const want = "its content (3000000 bytes) was not kept"
		if len(p.Items) != 1 || p.Items[0].Act != ActKeep || p.Items[0].Why != want {
			t.Errorf("to c%d: got %+v, want the file kept, because %q", number, p.Items, want)
		}
	}
}
