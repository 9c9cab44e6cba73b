/** Statuses with which an answer may reach the buyer (RFC 9110 §15.3). Another 2xx of an upstream counts as 200. */
export const SUCCESS_STATUSES = [200, 201, 202, 203, 204, 205, 206] as const

export type SuccessStatus = (typeof SUCCESS_STATUSES)[number]

export function isSuccessStatus(status: number): status is SuccessStatus {
  return SUCCESS_STATUSES.some((each) => each === status)
}

/** RFC 9110 §15.3.5 and §15.3.6: these answers have no content. */
export function hasContent(status: SuccessStatus): boolean {
  return status !== 204 && status !== 205
}
