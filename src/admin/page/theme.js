// Before the first paint: the theme that was chosen here, else the system's.
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
function useTheme() {
  let theme = systemIsDark.matches ? "dark" : "light";
  try {
    theme = localStorage.getItem("lictor.theme") ?? theme;
  } catch {
    // Storage can be forbidden.
  }
  document.documentElement.dataset.theme = theme;
}
systemIsDark.addEventListener("change", useTheme);
useTheme();
