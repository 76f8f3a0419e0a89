/** The store of the chat contract. */
import type { Row, Store, Value } from '../../../src/store/store.ts'

export interface ChatStoreUnderTest {
  readonly store: Store
  /** To make time pass, or to plant what an earlier version stored. */
  sql(text: string, ...values: Value[]): Promise<Row[]>
  /** A workspace without a folder. Returns its id. */
  workspace(): Promise<string>
}
