package main
import ("testing";"strings";"fmt";"github.com/tripmeter/tripmeter/estimate";"github.com/tripmeter/tripmeter/estimate/tiktoken")
func TestZZ(t *testing.T){
 ex:=tiktoken.New(tiktoken.Options{})
 for _,c:=range []string{"-","=","*","#","_","~",".","─","━","═","█","▓","░","■","□","▇","·"} {
  s:=c+": "
  for _,n:=range []int{1,2,3,4,8,16,33,47,64,79}{
   x:=[]byte("abc\n"+strings.Repeat(c,n)+"\n")
   s+=fmt.Sprintf("%d:%d/%.1f ",n,ex.Count("gpt-4o",x),float64(estimate.CountFor(0,x))/1000)
  }
  fmt.Println(s)
 }
}
