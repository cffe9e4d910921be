package contextwindow

import "github.com/roost-dev/roost/esjson"

// gallery chooses the messages whose images are sent: those from one message on. When the images become too many it
// moves on until half of the provider's limit is free, so that the earlier bytes change rarely and caches keep hitting.
// It is a fold over the visible messages: the same history gives the same choice.
type gallery struct {
	seen int // messages that were folded
	from int // the first message whose images are sent
	load load
}

// fold takes in the messages that were appended to all. shows reports which of them are visible; moved reports that
// images which were sent before no longer are.
func (g *gallery) fold(all []*checked, l ImageLimits, shows func(*checked) bool) (moved bool) {
	for ; g.seen < len(all); g.seen++ {
		c := all[g.seen]
		if c.load.count == 0 || !shows(c) {
			continue
		}
		if g.load = g.load.plus(c.load); !l.over(g.load, 1) {
			continue
		}
		for ; g.from < g.seen && l.over(g.load, 2); g.from++ {
			if old := all[g.from]; shows(old) {
				g.load = g.load.minus(old.load)
				moved = moved || old.load.count > 0
			}
		}
	}
	return moved
}

// withoutImages is a message as it is placed: without its images when they are too many. x is room for parsing.
func (g *gallery) withoutImages(x *esjson.Index, c *checked, o Options) *checked {
	if c.load.count == 0 || c.index >= g.from {
		return c
	}
	plain := &checked{tags: c.tags, index: c.index}
	plain.notes = append(plain.notes, c.notes...)
	plain.notes = append(plain.notes, "its images are not sent any more: there are more than the provider accepts in one request")
	o.NoImages = true
	x.Read(plain.content, 2)
	plain.takeContent(x, 0, o)
	return plain
}
