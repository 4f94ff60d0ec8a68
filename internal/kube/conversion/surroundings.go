package conversion

// References are what a pod's demands refer to besides the pod itself. They are
// computed once per snapshot, or when one of the objects they depend on changes: volume
// claims, volumes, storage classes, namespaces and, where there are default spread
// constraints, what pods belong to.
type References struct {
	Volumes    VolumeIndex
	Namespaces *Namespaces
	Usual      UsualSpread   // for pods without spread constraints of their own
	Groups     *PodSelectors // nil without Usual

	// IgnorePreferences leaves out soft spread constraints and preferred affinities.
	IgnorePreferences bool
}
