package world

// Facts about the Windows images.
const (
	windowsImageOwner = "801119661308"
	windowsDevice     = "/dev/sda1"
	firstWindows2025  = "1.35" // first Kubernetes version with Windows Server 2025 images
)

// windowsImages returns the Windows images of the newest release. They have no parameters with a pinned path.
func windowsImages(version string, rel release) []publishedImage {
	var out []publishedImage
	for _, year := range []string{"2019", "2022", "2025"} {
		if year == "2025" && version < firstWindows2025 { // as strings: all minors have two digits
			continue
		}
		base := "Windows_Server-" + year + "-English-Core-EKS_Optimized-" + version
		out = append(out, publishedImage{
			image: Image{
				Name: base + "-" + rel.at.Format("2006.01.02"), Architecture: "x86_64", OwnerID: windowsImageOwner, CreatedAt: rel.at,
				Description: "Microsoft Windows Server " + year + " Core EKS-optimized, Kubernetes " + version,
				RootDevice:  windowsDevice, Windows: true,
				Volumes: []ImageVolume{{Device: windowsDevice, SizeGiB: 50, Kind: "gp2"}},
				Family:  "Windows" + year, Variant: "standard", Version: version,
			},
			newest: "/aws/service/ami-windows-latest/" + base,
		})
	}
	return out
}
