package meter_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/core/meter"
)

// fields are the names of a struct's fields, in order.
func fields(prefix string, of any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		names = append(names, prefix+f.Name)
	}
	return names
}

// TestDictionaryDefinesEveryField: no metric without a definition, no definition of nothing.
func TestDictionaryDefinesEveryField(t *testing.T) {
	want := slices.Concat(
		fields("", meter.Summary{}), fields("Models[].", meter.ModelSummary{}), fields("Stats.", meter.Stats{}))
	var got []string
	for _, d := range meter.Dictionary() {
		got = append(got, d.Name)
		if d.Definition == "" {
			t.Errorf("%s has no definition", d.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("Dictionary defines\n%v\nwant\n%v", got, want)
	}
}

func ExampleDictionary() {
	d := meter.Dictionary()[5]
	fmt.Printf("%s [%s]: %s\n", d.Name, d.Unit, d.Definition)
	// Output: ThroughputTokS [tok/s]: Committed / (ClosedNs - OpenedNs)
}
