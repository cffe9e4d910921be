package store_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/store/importer"
)

func init() {
	store.Rooms.Import = func(ctx context.Context, s *store.Store, path string) (int, error) {
		list, err := importer.FindPath(ctx, s, path)
		if err != nil {
			return 0, err
		}
		r, err := importer.Run(ctx, s, list, importer.Options{})
		for _, item := range r.Items {
			if err == nil && !item.ByteEqual {
				err = fmt.Errorf("%s is not byte equal", item.Name)
			}
		}
		return r.Imported, err
	}
	store.Rooms.Check = func(ctx context.Context, s *store.Store, ids []string, repair bool) (out store.CheckReport, err error) {
		r, err := doctor.Check(ctx, s, ids, doctor.Options{Repair: repair})
		if err != nil {
			return out, err
		}
		data, err := json.Marshal(r)
		if err != nil {
			return out, err
		}
		return out, json.Unmarshal(data, &out)
	}
}
