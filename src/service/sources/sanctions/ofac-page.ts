/** Where OFAC shows an entry to people. */
export function ofacPage(uid: string): string | null {
  return /^\d+$/.test(uid) ? `https://sanctionssearch.ofac.treas.gov/Details.aspx?id=${uid}` : null
}
