package agent

import (
	"fmt"

	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/tool"
)

// offers reports whether the model that is asked now is told of a tool.
func (a *Agent) offers(spec tool.Spec) bool {
	o := a.Tools.Offer
	if a.Model.Provider != nil {
		o.Wants, o.Spares = catalogue.Tools(a.Model.Provider.Name(), a.Task.Settings.Model)
	}
	return o.Offers(spec)
}

// switchedOff says that the user does not want a tool to be used, nil when that is
// not so. It is an error of the call and not a rule of the policy: nobody is asked.
func (a *Agent) switchedOff(spec tool.Spec) error {
	if !a.Tools.Offer.Excludes(spec) {
		return nil
	}
	return fmt.Errorf("Tool %q is switched off in the user's settings (tools.exclude).", spec.Name) //nolint:staticcheck // a sentence for the model
}
