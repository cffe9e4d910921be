package filelog

import (
	"fmt"
	"testing"

	"github.com/roost-dev/roost/journal"
)

// What a log claims to have lost costs memory by its bytes, not by its numbers: ten
// short lines can claim ten million commits.
func TestAFewLinesThatClaimMillions(t *testing.T) {
	var o order
	var lost []journal.Damage
	off := int64(0)
	for k := range uint64(10) {
		line := logLine(1+k*maxLost, 1)
		v := o.line(rawLine{off: off, length: int64(len(line)), text: line, whole: true})
		off += int64(len(line))
		lost = append(lost, v.lost...)
		if !v.commit {
			t.Fatalf("commit %d does not count", 1+k*maxLost)
		}
	}
	if len(lost) > 10*mostNamed {
		t.Fatalf("%d places are named", len(lost))
	}
	// The first are named, and the last, which stands for those between.
	if end := lost[len(lost)-1]; lost[0].Seq != 2 || end.Seq != 9*maxLost || end.Reason != fmt.Sprintf("the line is missing, and %d before it", maxLost-2-mostNamed) {
		t.Fatalf("from %d to %+v", lost[0].Seq, end)
	}
	if o.last != 9*maxLost+1 {
		t.Fatalf("the last is %d", o.last)
	}
}
