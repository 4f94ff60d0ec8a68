package kube

// surroundings are what a pod's demands refer to besides the pod itself. They are
// computed once per snapshot, or when one of the objects they depend on changes: volume
// claims, volumes, storage classes, namespaces and, where there are default spread
// constraints, what pods belong to.
type surroundings struct {
	volumes       volumes
	namespaces    *namespaces
	usual         UsualSpread
	groups        *groups // nil without usual
	withoutWishes bool
}

func surroundingsOf(o Objects, view View) surroundings {
	out := surroundings{
		volumes:       volumesOf(o, view.Live),
		namespaces:    namespacesOf(o, view.Live),
		usual:         view.Usual,
		withoutWishes: view.WithoutWishes,
	}
	if !view.Usual.IsZero() {
		out.groups = groupsOf(o.Groups)
	}
	return out
}
