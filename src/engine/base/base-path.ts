/** The path below which a service is served, as part of its public address: `/shop`; empty at the root of its host. */
export function basePathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '')
}
