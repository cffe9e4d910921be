package filelog

import "github.com/roost-dev/roost/journal"

// sealOf signs and verifies with one key.
func sealOf(log, key string) *journal.Seal {
	k := journal.Key{ID: key, Secret: []byte("secret of " + key)}
	return &journal.Seal{Log: log, Sign: &k, Verify: []journal.Key{k}}
}
