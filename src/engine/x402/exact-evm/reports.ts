/** Lines of a look that is repeated: each is reported when it is new. */
export class Reports {
  #before = new Set<string>()

  next(report: (line: string) => void): (line: string) => void {
    const [before, now] = [this.#before, new Set<string>()]
    this.#before = now
    return (line) => {
      now.add(line)
      if (!before.has(line)) report(line)
    }
  }
}
