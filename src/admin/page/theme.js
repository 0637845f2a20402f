// Before the first paint: the theme that was chosen here, else the system's.
try {
  const theme = localStorage.getItem("lictor.theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // Storage can be forbidden.
}
