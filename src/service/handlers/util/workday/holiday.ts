export type Holiday = {
  readonly name: string
  /** In the first language of the country. */
  readonly local_name: string
  readonly type: 'public' | 'bank' | 'observance'
  /** Given for a holiday that fell on a weekend. */
  readonly substitute: boolean
  readonly half_day: boolean
  /** Whether work in general rests: a whole public holiday that is for everybody. */
  readonly day_off: boolean
  /** Set by the sighting of the moon: the date may move by a day until it is announced. */
  readonly moon_dependent: boolean
  readonly note: string | null
}
