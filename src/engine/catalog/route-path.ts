/** A path without the first segment `paid`, which many catalogs use and no id, title or sample repeats. */
export function withoutPaid(path: string): string {
  return path.replace(/^\/paid\//, '/')
}

/** `/paid/app` → `/sample/app`, `/v1/app` → `/sample/v1/app`. */
export function usualSamplePath(path: string): string {
  return `/sample${withoutPaid(path)}`
}
