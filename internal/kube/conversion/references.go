package conversion

// References has the data from other objects that PodValue needs to convert a pod: volume claims, volumes, storage
// classes and namespaces. With default spread constraints, it also has the Services and controllers of pods. It is
// computed once per snapshot, or when one of these objects changes.
type References struct {
	Volumes       VolumeIndex   // volume claims, volumes and storage classes
	Namespaces    *Namespaces   // labels of namespaces
	DefaultSpread DefaultSpread // for pods without spread constraints of their own
	Groups        *PodSelectors // nil if DefaultSpread is zero

	// IgnorePreferences leaves out soft spread constraints and preferred affinities.
	IgnorePreferences bool
}
