package store

import "github.com/roost-dev/roost/store/intake"

// Sent is the part of a task's API history that a request sends, as far as the journal holds it without the messages'
// bytes: of a long condensed task, it reads little. at are the indexes of these messages in the whole history. For a
// task of Cline's that was never continued in Roost it is the whole history, with the tags that it would get.
func (v *View) Sent() (history [][]byte, at []int, err error) {
	if v.State.Seq > 0 {
		list := v.State.Sent()
		raws, err := v.State.Raws(list)
		if err != nil {
			return nil, nil, err
		}
		i := 0
		history, at = make([][]byte, 0, len(list)), make([]int, 0, len(list))
		for place, m := range v.State.API() {
			if i < len(list) && list[i] == m {
				history, at = append(history, raws[i]), append(at, place)
				i++
			}
		}
		return history, at, nil
	}
	if history, err = v.wholeHistory(); err != nil {
		return nil, nil, err
	}
	for i := range history {
		at = append(at, i)
	}
	return history, at, nil
}

// wholeHistory is the API history of a task without a journal, tagged.
func (v *View) wholeHistory() ([][]byte, error) {
	history, err := v.State.RawAPI()
	if err != nil || v.Folder == nil || len(history) != v.Folder.API.Len() || !v.Ref.tags(v.Folder) {
		return history, err
	}
	return intake.SentByCline(v.Folder, history), nil
}
