package conversion

// References has what the value of a pod depends on besides the pod itself: volume claims, volumes, storage classes,
// namespaces and, with default spread constraints, the Services and controllers of pods. It is computed once per
// snapshot, or when one of these objects changes.
type References struct {
	Volumes       VolumeIndex   // volume claims, volumes and storage classes
	Namespaces    *Namespaces   // labels of namespaces
	DefaultSpread DefaultSpread // for pods without spread constraints of their own
	Groups        *PodSelectors // nil if DefaultSpread is zero

	// IgnorePreferences leaves out soft spread constraints and preferred affinities.
	IgnorePreferences bool
}
