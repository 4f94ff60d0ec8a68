// Package charts holds the Helm charts; its tests are those of the charts.
//
// In: nothing.
// Out: nothing; charts are not Go.
// Never: anything that a program imports.
package charts
