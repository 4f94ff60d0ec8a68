package conversion

// References are the objects, besides the pod itself, that the value of a pod depends on. They are computed once per
// snapshot, or when one of the objects changes: volume claims, volumes, storage classes, namespaces and, with default
// spread constraints, the Services and controllers of pods.
type References struct {
	Volumes    VolumeIndex   // volume claims, volumes and storage classes
	Namespaces *Namespaces   // labels of namespaces
	Usual      UsualSpread   // for pods without spread constraints of their own
	Groups     *PodSelectors // nil without Usual

	// IgnorePreferences leaves out soft spread constraints and preferred affinities.
	IgnorePreferences bool
}
