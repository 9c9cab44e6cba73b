import type { SourceFigures } from 'ratecard/service'

/** Fields counted for one source; further ones are counted together. */
const MOST_FIELDS = 50
const OTHER_FIELDS = 'other fields'

/** Counts what becomes of the questions to one source. */
export class SourceMetrics {
  readonly #now: () => Date
  readonly #report: (where: string) => void
  readonly #fields = new Map<string, number>()
  #figures: Omit<SourceFigures, 'fields'> = {
    asked: 0,
    failed: 0,
    drifted: 0,
    skipped: 0,
    lastDrift: undefined,
  }

  /** `report` is called once for each field that is not as it should be. */
  constructor(now: () => Date, report: (where: string) => void = () => {}) {
    this.#now = now
    this.#report = report
  }

  get figures(): SourceFigures {
    return { ...this.#figures, fields: this.#fields }
  }

  countAsked(): void {
    this.#figures = { ...this.#figures, asked: this.#figures.asked + 1 }
  }

  countFailed(): void {
    this.#figures = { ...this.#figures, failed: this.#figures.failed + 1 }
  }

  /** A whole answer. `where` names fields, as `whereItDiffers` says them. */
  countDrifted(where: string): void {
    this.#note(where, 1)
    this.#figures = { ...this.#figures, drifted: this.#figures.drifted + 1 }
  }

  /** Rows or fields of an answer that was used without them. */
  countSkipped(where: string, count = 1): void {
    this.#note(where, count)
    this.#figures = { ...this.#figures, skipped: this.#figures.skipped + count }
  }

  #note(where: string, count: number): void {
    const seen = this.#fields.get(where)
    const name = seen === undefined && this.#fields.size >= MOST_FIELDS ? OTHER_FIELDS : where
    if (seen === undefined && name === where) this.#report(where)
    this.#fields.set(name, (this.#fields.get(name) ?? 0) + count)
    this.#figures = { ...this.#figures, lastDrift: { at: this.#now(), where } }
  }
}

/**
 * The records of all sources, by their key under `sources:` in the catalog.
 *
 * @example
 * const records = new MetricsBySource(now)
 * new JsonSource(options, runtime, records.of('steam-store'))
 * records.figures().get('steam-store') // { asked: 12, failed: 0, drifted: 1, skipped: 3, … }
 */
export class MetricsBySource {
  readonly #now: () => Date
  readonly #report: (line: string) => void
  readonly #records = new Map<string, SourceMetrics>()

  /** `report` takes a line for the operator, once for each source and field. */
  constructor(now: () => Date, report: (line: string) => void = () => {}) {
    this.#now = now
    this.#report = report
  }

  of(key: string): SourceMetrics {
    const record =
      this.#records.get(key) ??
      new SourceMetrics(this.#now, (where) => this.#report(`source ${key}: unexpected form at ${where}`))
    this.#records.set(key, record)
    return record
  }

  figures(): ReadonlyMap<string, SourceFigures> {
    return new Map(Array.from(this.#records, ([key, record]) => [key, record.figures] as const))
  }
}
